// What is said and drawn of the arc that is chosen, and what a variable shares with it.

function plainTable(head, rows, name) {
  const numeric = (cell) => (typeof cell === "number" || cell === null ? "n" : null);
  const shown = (cell) => (numeric(cell) ? number(cell) : cell);
  const body = rows.map(({ cells, whole }) =>
    make("tr", { class: whole ? "whole" : null }, ...cells.map((cell, k) =>
      make(k ? "td" : "th", { scope: k ? null : "row", class: k ? "n" : null, "data-l": k ? head[k] : null }, shown(cell)))));
  const columns = head.map((words, k) => make("th", { scope: "col", class: k ? "n" : null }, words));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...columns)), make("tbody", {}, ...body));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, table);
}

function link(kind, index) {
  return make("a", { href: "#detail", [`data-${kind}`]: index }, (kind === "node" ? data.nodes : data.arcs)[index].name);
}

// A holder for a chart, drawn anew whenever its width changes.
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

function repaint(holder) {
  const known = painters.get(holder);
  if (known && known.width) holder.replaceChildren(known.paint(known.width));
}

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
function forestDetail(found, what, column, name, first = true) {
  const many = data.levels.length > MANY;
  const key = !first ? null : make("ul", { class: "key" },
    found.alone ? sample("alone", data.alone) : null,
    sample("pooled", found.pooling),
    sample("population", found.population),
    found.new[0] === null ? null : sample("expected", `range expected for a new ${sets.one}`),
    many ? make("li", {}, `dots above: all ${sets.many}; below: the lowest and the highest, or those that you look for`) : null);
  const ends = (pair) => (pair[0] === null ? "–" : range(pair));
  const head = [sets.one, "rows", column, "interval"];
  if (found.alone) head.push("alone", "interval alone");
  const whole = [found.short, data.learned.toLocaleString("en"), found.effect, ends(found.interval)];
  if (found.alone) whole.push("", "");
  const rows = () => data.levels.map((level, j) => {
    const cells = [level, (data.rows[j] ?? "–").toLocaleString("en"), found.own[j], ends(found.ownIntervals[j])];
    if (found.alone) cells.push(found.alone[j], ends(found.aloneIntervals[j]));
    return { cells };
  });
  const paint = (width) => forest(found, what, Math.min(width, 760), many ? chosenRows(found) : null);
  return [
    many && first ? finder() : null,
    chart(paint, ...(key ? [key] : [])),
    unfolded("Numbers", data.levels.length <= 12, () => plainTable(head, [{ cells: whole, whole: true }, ...rows()], name)),
  ].filter((part) => part !== null);
}

// What takes long to make, or is long to read, is made when it is opened.
function unfolded(title, open, made) {
  const holder = make("details", { open: open ? "" : null }, make("summary", {}, title));
  const fill = () => holder.children.length === 1 && holder.append(made());
  if (open) fill();
  holder.addEventListener("toggle", fill);
  return holder;
}

// A table with a row for each data set; of many, only what is common, and the rest when asked for.
function longTable(head, rows, name) {
  if (data.levels.length <= MANY) return [plainTable(head, rows, name)];
  const whole = rows.filter((row) => row.whole);
  return [
    whole.length ? plainTable(head, whole, name) : null,
    unfolded(`All ${data.levels.length} ${sets.many}`, false, () => plainTable(head, rows, `${name}, all`)),
  ].filter((part) => part !== null);
}

// Which of many data sets are drawn: those that are looked for, or the extremes.

const MANY = 30; // data sets from which on a chart is a summary
const EXTREMES = 6;
const FOUND = 12;
let sought = "";

function chosenRows(found) {
  const { own, alone } = found;
  const order = [...own.keys()].sort((a, b) => own[a] - own[b] || (alone ? alone[a] - alone[b] : 0));
  const shown = order.filter((j) => own[j] !== null);
  const words = sought.trim().toLowerCase();
  if (words) return order.filter((j) => data.levels[j].toLowerCase().includes(words)).slice(0, FOUND);
  if (shown.length <= 2 * EXTREMES) return shown;
  return [...shown.slice(0, EXTREMES), -1, ...shown.slice(-EXTREMES)];
}

function finder() {
  const field = make("input", { type: "search", autocomplete: "off", spellcheck: "false", value: sought, class: "finder" });
  field.addEventListener("input", () => {
    sought = field.value;
    for (const holder of detail.querySelectorAll(".chart")) repaint(holder);
    const there = data.levels.filter((level) => level.toLowerCase().includes(sought.trim().toLowerCase())).length;
    document.getElementById("said").textContent = sought.trim() ? `${there} of ${data.levels.length} ${sets.many}` : "";
  });
  return make("p", { class: "bar" }, make("label", {}, `Find ${sets.a} `, field));
}

// The effects of an arc: one, or one for each level.
function effectsDetail(arc) {
  const [parent, child] = [data.nodes[arc.parent].name, data.nodes[arc.child].name];
  return arc.terms.flatMap((term, k) => {
    const which = term.name ? `, ${term.name}` : "";
    const name = term.scale === "difference" ? "effect" : term.scale;
    return [
      arc.terms.length > 1 ? make("h5", {}, term.name) : null,
      ...forestDetail(term, `Effect of ${parent} on ${child}${which}`, name, `Effects in each ${sets.one}${which}`, k === 0),
    ];
  });
}

function arcDetail(index) {
  const arc = data.arcs[index];
  const heading = { difference: "Effect", "odds ratio": "Odds ratio", "rate ratio": "Rate ratio" }[arc.terms[0].scale];
  return [
    make("h3", { tabindex: -1 }, arc.name),
    ...arc.words.map((words) => make("p", {}, words)),
    make("ul", { class: "links" }, make("li", {}, "Variables:"), make("li", {}, link("node", arc.parent)), make("li", {}, link("node", arc.child))),
    make("h4", {}, `${heading} in each ${sets.one}`),
    ...effectsDetail(arc),
  ].filter((part) => part !== null);
}
