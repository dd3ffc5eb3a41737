// What is said and drawn of a variable that is chosen, and of a continuous one; others are in the next part.

function nodeDetail(index) {
  const node = data.nodes[index];
  const arcs = node.arcs.map((k) => make("li", {}, link("arc", k)));
  const mixed = data.nodes.some(({ kind }) => kind !== "continuous");
  return [
    make("h3", { tabindex: -1 }, node.name),
    ...node.equation.map((words) => make("p", { class: "equation" }, words)),
    make("p", { class: "soft" }, `${mixed ? `${node.kind[0].toUpperCase()}${node.kind.slice(1)}. ` : ""}${node.equationWords}`),
    make("p", {}, node.pooling),
    make("p", { class: node.warning ? "warning" : null }, node.status),
    make("p", {}, node.facts),
    arcs.length ? make("ul", { class: "links" }, make("li", {}, "Arcs:"), ...arcs) : make("p", {}, "No arc leads to it or away from it."),
    ...(node.kind === "continuous" ? linearDetail(node) : discreteDetail(node)),
  ];
}

function linearDetail(node) {
  const found = coefficientRows(node);
  const first = found.length - data.levels.length;
  const rows = found.map(({ cells, whole }, k) => ({ cells: [...cells, whole ? "" : node.sds.own[k - first]], whole }));
  return [
    make("h4", {}, `Coefficients in each ${sets.one}`),
    ...longTable(["", ...node.terms, "residual SD"], rows, `Coefficients in each ${sets.one}`),
    make("h4", {}, `Residual SD in each ${sets.one}`),
    make("p", { class: "soft" }, node.sdWords),
    ...forestDetail(node.sds, `Residual SD of ${node.name}`, "SD", `Residual SDs in each ${sets.one}`),
    make("h4", {}, "Residuals"),
    make("p", { class: "soft" }, node.note),
    ...residualDetail(node),
  ];
}

// Coefficients of the population, and of each data set.
function coefficientRows({ fixed, se, between, coef }) {
  const rows = [];
  if (fixed) {
    rows.push({ cells: [between ? "population" : `all ${sets.many}`, ...fixed], whole: true });
    rows.push({ cells: ["standard error", ...se], whole: true });
  }
  if (between) rows.push({ cells: ["SD between", ...between], whole: true });
  data.levels.forEach((level, j) => rows.push({ cells: [level, ...coef[j]] }));
  return rows;
}

function residualDetail(node) {
  const own = node.residuals;
  if (!own) return [];
  const key = own.coloured ? [make("ul", { class: "key" }, ...own.colours.map((code) =>
    make("li", {}, draw("svg", { width: 14, height: 12, "aria-hidden": "true" }, draw("circle", { cx: 6, cy: 7, r: 4.5, fill: colour(own, code) })), ` ${data.levels[code]}`)))] : [];
  return [
    ...key,
    make("div", { class: "charts" },
      chart((width) => againstFitted(node, Math.min(width, 420))),
      chart((width) => quantiles(node, Math.min(width, 420))),
      own.boxes.length ? chart((width) => boxes(node, Math.min(width, 420))) : null),
  ];
}

// Residuals: against what was expected, their quantiles, and their spread in data sets.

function colour(residuals, code) {
  const index = residuals.colours.indexOf(code);
  return `var(--s${residuals.coloured && index >= 0 ? index : 0})`;
}

function againstFitted(node, width) {
  const own = node.residuals;
  const xLimits = around([...own.fitted, ...own.band.map(([at]) => at)]);
  const { svg, x, y } = planeChart({
    width, high: 240, xLimits, yLimits: around([-1.3, 1.3, ...own.standard, ...own.band.flatMap(([, mean, sd]) => [mean - sd, mean + sd])]), name: "fitted",
    xWords: `expected ${node.name}`, yWords: "residual / SD",
    label: `Residuals of ${node.name} against expected values: the mean of neighbours, which should stay at 0, with one SD to each side, which should reach from -1 to 1.`,
  });
  const way = (points) => `M${points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("L")}`;
  // Where all rows expect the same there is one point, which gets a width of its own.
  const wide = 0.08 * (xLimits[1] - xLimits[0]);
  const band = own.band.length > 1 ? own.band : own.band.flatMap(([at, ...rest]) => [[at - wide, ...rest], [at + wide, ...rest]]);
  const upper = band.map(([at, mean, sd]) => [at, mean + sd]);
  const lower = band.map(([at, mean, sd]) => [at, mean - sd]);
  svg.append(draw("path", { d: `${way([...upper, ...lower.reverse()])}Z`, class: "spread" }));
  own.fitted.forEach((value, k) => {
    svg.append(draw("circle", { cx: x(value).toFixed(1), cy: y(own.standard[k]).toFixed(1), r: 2, fill: colour(own, own.codes[k]), "fill-opacity": 0.5 }));
  });
  for (const side of [-1, 1]) svg.append(line(x(xLimits[0]), y(side), x(xLimits[1]), y(side), "mean"));
  svg.append(line(x(xLimits[0]), y(0), x(xLimits[1]), y(0), "zero"));
  svg.append(draw("path", { d: way(band.map(([at, mean]) => [at, mean])), class: "trend" }));
  return svg;
}

function quantiles(node, width) {
  const own = node.residuals;
  const points = [[-1.5, -1.5], [1.5, 1.5], ...own.curves.flatMap((curve) => curve.points)];
  const [xLimits, yLimits] = [0, 1].map((k) => around(points.map((point) => point[k])));
  const [low, far] = [Math.max(xLimits[0], yLimits[0]), Math.min(xLimits[1], yLimits[1])];
  const { svg, x, y } = planeChart({
    width, high: 240, xLimits, yLimits, name: "quantiles",
    xWords: "normal quantile", yWords: "quantile",
    label: `Quantiles of the residuals of ${node.name} against those of the normal distribution; they should lie on the line.`,
  });
  svg.append(line(x(low), y(low), x(far), y(far), "zero"));
  for (const curve of own.curves) {
    const hue = colour(own, curve.code);
    const way = curve.points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("L");
    const title = draw("title", {}, curve.code === null ? `all ${sets.many}` : data.levels[curve.code]);
    if (way) svg.append(draw("path", { d: `M${way}`, class: "curve", style: `stroke: ${hue}` }, title));
    if (own.fitted.length) continue; // with rows there are too many points to mark
    for (const [a, b] of curve.points) svg.append(draw("circle", { cx: x(a).toFixed(1), cy: y(b).toFixed(1), r: 2.4, fill: hue }));
  }
  return svg;
}

const some = (shown, all) => (shown < all ? ` (the ${shown} of ${all} ${sets.many} that are farthest off)` : "");

function boxes(node, width) {
  const own = node.residuals;
  const limits = around([-1.3, 1.3, ...own.boxes.flatMap((box) => box.ends)]);
  const { svg, x, y, top, bottom } = rowsChart({
    width, limits, names: own.boxes.map((box) => data.levels[box.code]), notes: own.boxes.map((box) => box.rows.toLocaleString("en")),
    axis: `residual / SD${some(own.boxes.length, own.boxesOf)}`, name: "boxes",
    label: `Spread of the residuals of ${node.name} in each ${sets.one}: the mean, and one SD to each side.`,
  });
  for (const side of [-1, 1]) svg.prepend(line(x(side), top, x(side), bottom, "mean"));
  own.boxes.forEach((box, row) => {
    const [low, middle, high] = box.ends.map((value) => x(value));
    const at = y(row);
    svg.append(draw("rect", { x: low, y: at - 5.5, width: high - low, height: 11, class: "box", fill: colour(own, box.code) }), line(middle, at - 5.5, middle, at + 5.5, "tickmark"));
  });
  return svg;
}
