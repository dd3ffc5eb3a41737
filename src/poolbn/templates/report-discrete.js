// What is said and drawn of a discrete variable or a count.

function discreteDetail(node) {
  const parts = [];
  if (node.probabilities) parts.push(make("h4", {}, `Probabilities in each ${sets.one}`), ...probabilityDetail(node));
  if (node.curves.length) {
    const counts = node.kind === "count";
    parts.push(
      make("h4", {}, counts ? "Expected count" : "Probability along each parent"),
      make("p", { class: "soft" }, `The thick line is the population's.${node.coefficients.terms.length > 2 ? " Other parents are at their means." : ""}`),
      curveKey(node),
      make("div", { class: "charts" }, ...node.curves.map((curve) => chart((width) => curveChart(node, curve, Math.min(width, 420))))),
    );
  }
  if (node.coefficients) {
    parts.push(make("h4", {}, `Coefficients in each ${sets.one}`), make("p", { class: "soft" }, node.kind === "count" ? "Of the logarithm of the mean." : "Of log odds."));
    for (const block of node.coefficients.blocks) {
      if (node.coefficients.blocks.length > 1) parts.push(make("h5", {}, block.outcome));
      parts.push(...longTable(["", ...node.coefficients.terms], coefficientRows(block), `Coefficients in each ${sets.one} ${block.outcome}`));
    }
  }
  parts.push(make("h4", {}, node.kind === "count" ? "Residuals" : "Calibration"), make("p", { class: "soft" }, node.note));
  if (node.kind === "count") parts.push(...residualDetail(node));
  else if (node.calibration) parts.push(...calibrationDetail(node));
  return parts;
}

const share = (value) => (value === null ? "–" : value > 0 && value < 0.001 ? "< 0.1%" : `${Number((100 * value).toPrecision(value < 0.1 ? 2 : 3))}%`);

// Small multiples: a panel for each configuration of the parents and each level, with a bar for each
// data set; where these are the same, one for each level with a bar for each configuration.
function probabilityDetail(node) {
  const { shown, configurations, population, own, name, more } = node.probabilities;
  const { levels } = node;
  const most = Math.max(0.01, ...shown.flatMap((k) => configurations.flatMap((_, c) => [population[c][k], ...own.map((each) => each[c][k] || 0)])));
  const paint = own.length > MANY ? probabilityDots : probabilityBars;
  const panel = (title, names, values, whole) => make("figure", {}, make("figcaption", {}, title),
    follower((width) => paint({ title: `${node.name} ${title}`, names, values, whole, most, width: Math.min(width, 420) })));
  const panels = own.length
    ? configurations.flatMap((given, c) => shown.map((k) => panel(given ? `${levels[k]} given ${given}` : levels[k],
      [name, ...data.levels], [population[c][k], ...own.map((each) => each[c][k])], true)))
    : shown.map((k) => panel(levels[k], configurations.map((given) => given || `all ${sets.many}`), population.map((line) => line[k]), false));
  const head = ["", ...configurations.flatMap((given) => shown.map((k) => (given ? `${levels[k]}, ${given}` : levels[k])))];
  const cells = (table) => table.flatMap((line) => shown.map((k) => share(line[k])));
  const rows = [{ cells: [name, ...cells(population)], whole: true }, ...own.map((each, j) => ({ cells: [data.levels[j], ...cells(each)] }))];
  return [
    ...(own.length ? [] : [make("p", { class: "soft" }, `They are the same in all ${sets.many}.`)]),
    make("div", { class: own.length ? "multiples" : "multiples wide" }, ...panels),
    ...(more ? [make("p", { class: "soft" }, `${more} more sets of the parents' levels are not drawn.`)] : []),
    unfolded("Numbers", false, () => plainTable(head, rows, `Probabilities of ${node.name}`)),
  ];
}

function follower(paint) {
  const holder = make("div", { class: "chart" });
  follow(holder, paint);
  return holder;
}

// A bar for each name; the first is that of the whole, if there is one.
function probabilityBars({ title, names, values, whole, most, width }) {
  const high = names.length > 20 ? 14 : 18;
  const label = `Probability of ${title}: ${names.map((words, row) => `${words} ${values[row] === null ? "not shown" : share(values[row])}`).slice(0, 30).join(", ")}.`;
  const { svg, x, y, top, bottom } = rowsChart({ width, names, notes: values.map(share), room: 6, limits: [0, most], label, high, name: "bars", axis: "probability" });
  values.forEach((value, row) => {
    if (value === null) {
      svg.append(text(x(0) + 4, y(row) + 4, "not shown apart", { class: "note" }));
      return;
    }
    const look = whole && !row ? "share whole" : "share";
    svg.append(draw("rect", { x: x(0), y: y(row) - high * 0.36, width: Math.max(0.5, x(value) - x(0)), height: high * 0.72, class: look, "data-value": value }));
  });
  if (whole) svg.append(line(x(values[0]), top, x(values[0]), bottom, "mean"));
  return svg;
}

// Many data sets: a dot for each, and a line for the whole.
function probabilityDots({ title, values: [whole, ...values], most, width }) {
  const there = values.filter((value) => value !== null);
  const limits = [0, most];
  const crowd = swarm(there, limits, false, width - 40);
  const bottom = crowd.height + 8;
  const hidden = values.length - there.length;
  const svg = picture(width, bottom + 42, `Probability of ${title} in ${there.length} ${sets.many}${there.length ? `, from ${share(Math.min(...there))} to ${share(Math.max(...there))}` : ""}; ${share(whole)} in the population.`, "bars");
  const x = scale(0, most, 14, width - 24);
  svg.append(line(x(whole), 2, x(whole), bottom, "mean"), crowd.paint(x, bottom - 2));
  xAxis(svg, x, limits, bottom, width - 40, hidden ? `probability; ${hidden} are not shown apart` : "probability");
  return svg;
}

function curveKey(node) {
  if (data.levels.length > 8) return make("p", { class: "soft" }, `Thin lines are ${sets.many}'.`);
  const drawn = data.levels.map((level, j) => [level, j]).filter(([, j]) => node.curves[0].own[j][0] !== null);
  return make("ul", { class: "key" }, ...drawn.map(([level, j]) =>
    make("li", {}, draw("svg", { width: 22, height: 12, "aria-hidden": "true" }, draw("path", { d: "M1,6H21", class: "curve", style: `stroke: var(--s${j})` })), ` ${level}`)));
}

function curveChart(node, curve, width) {
  const few = data.levels.length <= 8;
  const drawn = curve.own.map((values, j) => [values, j]).filter(([values]) => values[0] !== null);
  const all = [...curve.population, ...drawn.flatMap(([values]) => values)];
  const words = curve.outcome ? `probability of ${curve.outcome}` : "expected count";
  const { svg, x, y } = planeChart({
    width, high: 240, xLimits: around(curve.x, 0), yLimits: [0, Math.max(...all) * 1.05], name: "curves",
    xWords: curve.parent, yWords: words,
    label: `The ${words} of ${node.name} along ${curve.parent}: in the population from ${number(curve.population[0])} to ${number(curve.population[curve.population.length - 1])}.`,
  });
  const way = (values) => `M${values.map((value, k) => `${x(curve.x[k]).toFixed(1)},${y(value).toFixed(1)}`).join("L")}`;
  for (const [values, j] of drawn) svg.append(draw("path", { d: way(values), class: "curve", style: `stroke: var(--s${few ? j : 0})`, "stroke-opacity": few ? 1 : 0.35 }, draw("title", {}, data.levels[j])));
  svg.append(draw("path", { d: way(curve.population), class: "trend" }, draw("title", {}, "population")));
  return svg;
}

// Shares of rows against probabilities, and in each data set.
function calibrationDetail(node) {
  return [make("div", { class: "charts" }, ...node.calibration.flatMap((found) => [
    chart((width) => reliability(node, found, Math.min(width, 420))),
    found.sets.length ? chart((width) => sharesChart(node, found, Math.min(width, 420))) : null,
  ]))];
}

function reliability(node, { level, bins }, width) {
  const far = Math.min(1, 1.05 * Math.max(0.02, ...bins.flatMap(([, expected, , , upper]) => [expected, upper])));
  const name = node.levels[level];
  const { svg, x, y } = planeChart({
    width, high: 240, xLimits: [0, far], yLimits: [0, far], name: "calibration",
    xWords: `probability of ${name}`, yWords: "share of rows",
    label: `Share of rows of ${node.name} with level ${name} against its probability, in ${bins.length} groups of rows: ${bins.map(([, expected, seen]) => `${share(expected)} expected and ${share(seen)} seen`).join("; ")}.`,
  });
  svg.append(line(x(0), y(0), x(far), y(far), "zero"));
  for (const [rows, expected, seen, lower, upper] of bins) {
    const at = x(expected).toFixed(1);
    svg.append(draw("g", { class: "pooled", "data-rows": rows, "data-expected": expected, "data-seen": seen },
      line(at, y(lower).toFixed(1), at, y(upper).toFixed(1), ""),
      draw("circle", { cx: at, cy: y(seen).toFixed(1), r: 3.8 }),
      draw("title", {}, `${rows.toLocaleString("en")} rows: ${share(expected)} expected, ${share(seen)} seen`)));
  }
  return svg;
}

function sharesChart(node, { level, sets: parts, setsOf }, width) {
  const name = node.levels[level];
  const far = Math.min(1, 1.05 * Math.max(0.02, ...parts.flatMap(([, , expected, , , upper]) => [expected, upper])));
  const { svg, x, y } = rowsChart({
    width, names: parts.map(([code]) => data.levels[code]), notes: parts.map(([, rows]) => rows.toLocaleString("en")), limits: [0, far], name: "shares",
    axis: `share of ${name}${some(parts.length, setsOf)}`,
    label: `Share of ${name} in each ${sets.one}: ${parts.map(([code, , expected, seen]) => `${data.levels[code]} ${share(seen)}, expected ${share(expected)}`).slice(0, 30).join("; ")}.`,
  });
  parts.forEach(([, rows, expected, seen, lower, upper], row) => {
    const at = y(row);
    svg.append(draw("g", { class: "pooled" }, line(x(lower), at, x(upper), at, ""), draw("circle", { cx: x(seen).toFixed(1), cy: at, r: 3.8 })),
      line(x(expected).toFixed(1), at - 7, x(expected).toFixed(1), at + 7, "tickmark"));
  });
  return svg;
}
