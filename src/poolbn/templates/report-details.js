// What is said and drawn of the arc or variable that is chosen.

function plainTable(head, rows, name) {
  const numeric = (cell) => (typeof cell === "number" || cell === null ? "n" : null);
  const shown = (cell) => (numeric(cell) ? number(cell) : cell);
  const body = rows.map(({ cells, whole }) =>
    make("tr", { class: whole ? "whole" : null }, ...cells.map((cell, k) =>
      make(k ? "td" : "th", { scope: k ? null : "row", class: k ? "n" : null }, shown(cell)))));
  const columns = head.map((words, k) => make("th", { scope: "col", class: k ? "n" : null }, words));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...columns)), make("tbody", {}, ...body));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, table);
}

function link(kind, place) {
  const arc = data.arcs[place];
  const words = kind === "node" ? data.nodes[place].name : `${data.nodes[arc.parent].name} → ${data.nodes[arc.child].name}`;
  return make("a", { href: "#detail", [`data-${kind}`]: place }, words);
}

// A place for a chart, drawn anew whenever its width changes.
function chart(paint, ...key) {
  const holder = make("div", { class: "chart" });
  follow(holder, paint);
  return make("div", { class: "kept" }, ...key, holder);
}

const painters = new WeakMap();
const watcher = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const known = painters.get(target);
    const width = Math.floor(contentRect.width);
    if (width > 0 && width !== known.width) {
      known.width = width;
      target.replaceChildren(known.paint(width));
    }
  }
});

function follow(holder, paint) {
  painters.set(holder, { paint, width: 0 });
  watcher.observe(holder);
}

function sample(name, words) {
  const mark = {
    pooled: () => [line(2, 7, 28, 7, ""), draw("circle", { cx: 15, cy: 7, r: 3.8 })],
    alone: () => [line(2, 7, 28, 7, ""), draw("circle", { cx: 15, cy: 7, r: 3.4 })],
    population: () => [line(6, 7, 24, 7, "thick"), draw("path", { d: "M9,7l6,-6l6,6l-6,6z" })],
    expected: () => [line(2, 7, 28, 7, "")],
  }[name]();
  const kind = name === "expected" ? "population" : name;
  return make("li", {}, draw("svg", { width: 30, height: 14, "aria-hidden": "true" }, draw("g", { class: kind }, ...mark)), ` ${words}`);
}

// A chart of estimates in all data sets with its key, and the numbers.
function forestDetail(found, what, column, name) {
  const key = make("ul", { class: "key" },
    found.alone ? sample("alone", "no pooling: its own rows alone") : null,
    sample("pooled", found.pooling),
    sample("population", found.population),
    found.new[0] === null ? null : sample("expected", "where another data set is expected"));
  const ends = (pair) => (pair[0] === null ? "–" : range(pair));
  const head = ["data set", "rows", column, "interval"];
  if (found.alone) head.push("alone", "interval alone");
  const whole = [found.population.split(" ")[0], data.learned.toLocaleString("en"), found.effect, ends(found.interval)];
  if (found.alone) whole.push("", "");
  const rows = data.levels.map((level, j) => {
    const cells = [level, data.rows[j].toLocaleString("en"), found.own[j], ends(found.ownIntervals[j])];
    if (found.alone) cells.push(found.alone[j], ends(found.aloneIntervals[j]));
    return { cells };
  });
  return [
    chart((width) => forest(found, what, Math.min(width, 760)), key),
    make("details", { open: data.levels.length <= 12 ? "" : null }, make("summary", {}, "Numbers"), plainTable(head, [{ cells: whole, whole: true }, ...rows], name)),
  ];
}

function arcDetail(place) {
  const arc = data.arcs[place];
  const [parent, child] = [data.nodes[arc.parent].name, data.nodes[arc.child].name];
  return [
    make("h3", { tabindex: -1 }, `${parent} → ${child}`),
    ...arc.words.map((words) => make("p", {}, words)),
    make("ul", { class: "links" }, make("li", {}, "Variables:"), make("li", {}, link("node", arc.parent)), make("li", {}, link("node", arc.child))),
    make("h4", {}, "Effect in each data set"),
    ...forestDetail(arc, `Effect of ${parent} on ${child}`, "effect", "Effects in each data set"),
  ];
}

function nodeDetail(place) {
  const node = data.nodes[place];
  const rows = [];
  if (node.fixed) {
    const name = node.between ? "population" : "all data sets";
    rows.push({ cells: [name, ...node.fixed, ""], whole: true }, { cells: ["standard error", ...node.se, ""], whole: true });
  }
  if (node.between) rows.push({ cells: ["SD between", ...node.between, ""], whole: true });
  data.levels.forEach((level, j) => rows.push({ cells: [level, ...node.coef[j], node.sds.own[j]] }));
  const facts = [
    `Log-likelihood ${number(node.loglik)}, ${node.parameters} parameters, BIC ${number(node.bic)}.`,
    node.terms.length > 1 && node.explained !== null ? `Its parents explain ${(100 * node.explained).toFixed(0)}% of its variance inside data sets.` : "",
    node.p === null ? "" : `Test for the same residual variance in all data sets: p ${node.p < 0.001 ? "" : "= "}${pValue(node.p)}.`,
  ];
  const arcs = node.arcs.map((k) => make("li", {}, link("arc", k)));
  return [
    make("h3", { tabindex: -1 }, node.name),
    make("p", { class: "equation" }, node.equation),
    make("p", { class: "soft" }, node.equationWords),
    make("p", {}, `Pooling: ${node.pooling}. ${node.poolingWords}`),
    make("p", { class: node.warning ? "warning" : null }, `Fit: ${node.status}: ${node.detail}.`),
    make("p", {}, facts.filter(Boolean).join(" ")),
    arcs.length ? make("ul", { class: "links" }, make("li", {}, "Arcs:"), ...arcs) : make("p", {}, "No arc leads to it or away from it."),
    make("h4", {}, "Coefficients in each data set"),
    plainTable(["", ...node.terms, "residual SD"], rows, "Coefficients in each data set"),
    make("h4", {}, "Residual SD in each data set"),
    make("p", { class: "soft" }, node.sdWords),
    ...forestDetail(node.sds, `Residual SD of ${node.name}`, "SD", "Residual SDs in each data set"),
    make("h4", {}, "Residuals"),
    ...residualDetail(node),
  ];
}

function residualDetail(node) {
  const own = node.residuals;
  if (!own) return [make("p", { class: "soft" }, node.note)];
  const dots = own.fitted.length < own.rows ? ` ${own.fitted.length} of them are shown as dots.` : "";
  const left = own.leftOut ? ` ${own.leftOut.toLocaleString("en")} rows with a missing cell are left out.` : "";
  const key = own.coloured ? make("ul", { class: "key" }, ...own.boxes.map((box) =>
    make("li", {}, draw("svg", { width: 14, height: 12, "aria-hidden": "true" }, draw("circle", { cx: 6, cy: 7, r: 4.5, fill: colour(own, box.code) })), ` ${data.levels[box.code]}`))) : null;
  return [
    make("p", { class: "soft" }, `${own.rows.toLocaleString("en")} rows.${dots}${left} If the fit is good, the line of means stays at 0, quantiles lie on the line, and boxes reach from one dashed line to the other.`),
    ...(key ? [key] : []),
    make("div", { class: "charts" },
      chart((width) => againstFitted(node, Math.min(width, 420))),
      chart((width) => quantiles(node, Math.min(width, 420))),
      chart((width) => boxes(node, Math.min(width, 420)))),
  ];
}
