// The charts: each takes a width in pixels and returns an SVG element.

// An interval cut at the limits, with an arrow head where it goes on.
function interval(x, y, ends, limits, name) {
  if (ends[0] === null || ends[1] === null) return draw("g");
  const low = Math.max(ends[0], limits[0]);
  const high = Math.min(ends[1], limits[1]);
  if (low > high) return draw("g");
  const group = draw("g", {}, line(x(low).toFixed(1), y, x(high).toFixed(1), y, name));
  for (const [beyond, end, way] of [[ends[0] < limits[0], low, 5], [ends[1] > limits[1], high, -5]]) {
    const at = x(end);
    if (beyond) group.append(draw("path", { d: `M${at},${y}l${way},-3.5v7z` }));
  }
  return group;
}

// A number, and its interval if it has one.
function told(value, ends) {
  return ends[0] === null ? number(value) : `${number(value)}, ${range(ends)}`;
}

// Estimates of one thing in all data sets; `what` says whose, for those who cannot see it.
function forest(arc, what, width) {
  const count = data.levels.length;
  const order = [...data.levels.keys()].sort((i, j) => arc.own[i] - arc.own[j] || (arc.alone ? arc.alone[i] - arc.alone[j] : 0));
  const names = [...order.map((j) => data.levels[j]), arc.population.split(" ")[0]];
  const notes = [...order.map((j) => data.rows[j].toLocaleString("en")), data.learned.toLocaleString("en")];
  const sure = arc.interval[0] !== null;
  const label = `${what} in ${count} data sets, from ${range(around(arc.own, 0))}; ${arc.population} ${number(arc.effect)}${sure ? `, interval ${range(arc.interval)}` : ""}.`;
  const { limits } = arc;
  const high = count > 30 ? 17 : 23;
  const { svg, x, y, top, bottom } = rowsChart({
    width, names, notes, limits, label, high, top: 20, name: "forest", axis: arc.axis,
  });
  const under = [];
  if (sure) {
    const ends = [Math.max(arc.interval[0], limits[0]), Math.min(arc.interval[1], limits[1])].map(x);
    under.push(draw("rect", { x: ends[0], y: top, width: Math.max(0, ends[1] - ends[0]), height: bottom - top, class: "band" }));
  }
  if (limits[0] <= 0 && limits[1] >= 0) under.push(line(x(0), top, x(0), bottom, "zero"));
  under.push(line(x(arc.effect), top, x(arc.effect), bottom, "mean"));
  svg.prepend(...under);
  svg.append(text(width - 2, 13, "rows", { "text-anchor": "end", class: "note" }));
  const aside = arc.alone ? high * 0.17 : 0;
  order.forEach((j, row) => {
    const middle = y(row);
    if (arc.alone && arc.alone[j] !== null) {
      const at = middle - aside;
      const mark = draw("g", { class: "alone", "data-level": j, "data-value": arc.alone[j] }, interval(x, at, arc.aloneIntervals[j], limits, ""));
      if (arc.alone[j] >= limits[0] && arc.alone[j] <= limits[1]) mark.append(draw("circle", { cx: x(arc.alone[j]).toFixed(1), cy: at, r: 3.4 }));
      mark.append(draw("title", {}, `${data.levels[j]} alone: ${told(arc.alone[j], arc.aloneIntervals[j])}`));
      svg.append(mark);
    }
    const at = middle + aside;
    svg.append(draw("g", { class: "pooled", "data-level": j, "data-value": arc.own[j] },
      interval(x, at, arc.ownIntervals[j], limits, ""),
      draw("circle", { cx: x(arc.own[j]).toFixed(1), cy: at, r: 3.8 }),
      draw("title", {}, `${data.levels[j]}: ${told(arc.own[j], arc.ownIntervals[j])}`)));
  });
  const last = y(count);
  const at = x(arc.effect);
  svg.append(draw("g", { class: "population", "data-value": arc.effect },
    interval(x, last, arc.new, limits, ""),
    interval(x, last, arc.interval, limits, "thick"),
    draw("path", { d: `M${at - 6},${last}l6,-6l6,6l-6,6z` }),
    draw("title", {}, `${arc.population}: ${told(arc.effect, arc.interval)}`)));
  return svg;
}

// All arcs, those that differ most on top: data sets as dots, the population as a line.
function spread(width, most = 40) {
  const order = [...data.arcs.keys()].sort((i, j) => data.arcs[j].spread - data.arcs[i].spread || Math.abs(data.arcs[j].standard) - Math.abs(data.arcs[i].standard)).slice(0, most);
  const arcs = order.map((k) => data.arcs[k]);
  const names = arcs.map((arc) => `${data.nodes[arc.parent].name} → ${data.nodes[arc.child].name}`);
  const dots = arcs.map((arc) => arc.own.map((value) => value * arc.ratio));
  const ends = arcs.flatMap((arc) => [arc.standard - arc.spread, arc.standard + arc.spread]);
  const limits = around([0, ...ends, ...dots.flat()]);
  const tested = arcs.some((arc) => arc.p !== null);
  const shown = arcs.length < data.arcs.length ? ` (${arcs.length} of ${data.arcs.length} arcs)` : "";
  const { svg, x, y, top, bottom } = rowsChart({
    width, names, limits, top: tested ? 20 : 6, name: "spread",
    notes: tested ? arcs.map((arc) => pValue(arc.p)) : [],
    label: `Standardised effects of ${arcs.length} arcs in all data sets; the table of tests below has the numbers.`,
    axis: `standardised effect${shown}`,
  });
  if (tested) svg.append(text(width - 2, 13, "p", { "text-anchor": "end", class: "note" }));
  svg.prepend(line(x(0), top, x(0), bottom, "zero"));
  arcs.forEach((arc, row) => {
    const at = y(row);
    const here = x(arc.standard).toFixed(1);
    svg.append(line(x(arc.standard - arc.spread).toFixed(1), at, x(arc.standard + arc.spread).toFixed(1), at, "reach"));
    svg.append(line(here, at - 7, here, at + 7, "tickmark"));
    dots[row].forEach((value) => {
      const other = value * arc.standard < 0 ? " other" : "";
      svg.append(draw("circle", { cx: x(value).toFixed(1), cy: at, r: 3, class: `dot${other}` }));
    });
  });
  return svg;
}

// Differences of poolings from the best one: folds or data sets as dots, their mean, two errors.
function differences(width, each, weights, absent, axis) {
  const { poolings, best } = data.comparison;
  const there = each.map((values) => values.every((value) => value !== null));
  const sum = weights.reduce((a, b) => a + b, 0);
  const means = each.map((values) => values.reduce((total, value, k) => total + value * weights[k], 0) / sum);
  const reaches = each.map((values) => {
    const n = values.length;
    const middle = values.reduce((a, b) => a + b, 0) / n;
    return n > 1 ? 2 * Math.sqrt(values.reduce((total, v) => total + (v - middle) ** 2, 0) / (n - 1) / n) : 0;
  });
  const all = each.flatMap((values, p) => (there[p] ? [...values, means[p] - reaches[p], means[p] + reaches[p]] : []));
  const limits = around([0, ...all]);
  const told = poolings.map((name, p) => `${name} ${there[p] ? number(means[p]) : absent}`).join(", ");
  const { svg, x, y, top, bottom, high } = rowsChart({ width, names: poolings, limits, high: 26, axis, name: "differences", label: `${axis}: ${told}.` });
  svg.prepend(draw("rect", { x: 0, y: top + best * high, width, height: high, class: "best" }), line(x(0), top, x(0), bottom, "zero"));
  poolings.forEach((name, p) => {
    const at = y(p);
    if (!there[p]) {
      svg.append(text((x(limits[0]) + x(limits[1])) / 2, at + 4, absent, { "text-anchor": "middle", class: "note" }));
      return;
    }
    for (const value of each[p]) svg.append(draw("circle", { cx: x(value).toFixed(1), cy: at, r: 3, class: "dot small" }));
    svg.append(line(x(means[p] - reaches[p]), at, x(means[p] + reaches[p]), at, "error"));
    svg.append(draw("circle", { cx: x(means[p]).toFixed(1), cy: at, r: 4.5, class: "centre" }));
  });
  return svg;
}

function bars(width) {
  const boot = data.bootstrap;
  const shown = boot.bars.length < boot.pairs ? `; ${boot.bars.length} of ${boot.pairs} pairs` : "";
  const { svg, x, y, top, bottom } = rowsChart({
    width, names: boot.bars.map((bar) => bar.name), notes: boot.bars.map((bar) => bar.strength.toFixed(2)), limits: [0, 1], high: 21, name: "bars",
    label: "Strength of arcs in a bootstrap; the table below has the numbers.",
    axis: `share of ${boot.replicates} networks${shown}`,
  });
  boot.bars.forEach((bar, row) => {
    const split = x(bar.strength * bar.direction);
    const group = draw("g", { class: bar.sure ? "" : "weak" });
    group.append(draw("rect", { x: x(0), y: y(row) - 7, width: split - x(0), height: 14, class: "there" }));
    group.append(draw("rect", { x: split, y: y(row) - 7, width: x(bar.strength) - split, height: 14, class: "back" }));
    svg.append(group);
  });
  svg.append(line(x(boot.threshold), top, x(boot.threshold), bottom, "mean"));
  return svg;
}

// Residuals of a node: against what was expected, their quantiles, and their spread in data sets.
function colour(residuals, code) {
  const place = residuals.boxes.findIndex((box) => box.code === code);
  return `var(--s${residuals.coloured && place >= 0 ? place : 0})`;
}

function againstFitted(node, width) {
  const own = node.residuals;
  const { svg, x, y } = planeChart({
    width, high: 240, xLimits: around(own.fitted), yLimits: around([0, ...own.standard]), name: "fitted",
    xWords: `expected ${node.name}`, yWords: "residual / SD",
    label: `Residuals of ${node.name} against expected values; the mean of neighbours should stay at 0.`,
  });
  svg.append(line(x(around(own.fitted)[0]), y(0), x(around(own.fitted)[1]), y(0), "zero"));
  own.fitted.forEach((value, k) => {
    svg.append(draw("circle", { cx: x(value).toFixed(1), cy: y(own.standard[k]).toFixed(1), r: 2, fill: colour(own, own.codes[k]), "fill-opacity": 0.5 }));
  });
  const way = own.trend.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("L");
  svg.append(draw("path", { d: `M${way}`, class: "trend" }));
  return svg;
}

function quantiles(node, width) {
  const own = node.residuals;
  const points = own.curves.flatMap((curve) => curve.points);
  const [xLimits, yLimits] = [0, 1].map((k) => around(points.map((point) => point[k])));
  const [low, far] = [Math.max(xLimits[0], yLimits[0]), Math.min(xLimits[1], yLimits[1])];
  const { svg, x, y } = planeChart({
    width, high: 240, xLimits, yLimits, name: "quantiles",
    xWords: "normal quantile", yWords: "quantile",
    label: `Quantiles of the residuals of ${node.name} against those of the normal distribution; they should lie on the line.`,
  });
  svg.append(line(x(low), y(low), x(far), y(far), "zero"));
  for (const curve of own.curves) {
    const way = curve.points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("L");
    svg.append(draw("path", { d: `M${way}`, class: "curve", style: `stroke: ${colour(own, curve.code)}` }, draw("title", {}, curve.code === null ? "all data sets" : data.levels[curve.code])));
  }
  return svg;
}

function boxes(node, width) {
  const own = node.residuals;
  const limits = around(own.boxes.flatMap((box) => box.ends));
  const { svg, x, y, top, bottom } = rowsChart({
    width, limits, names: own.boxes.map((box) => data.levels[box.code]), notes: own.boxes.map((box) => box.rows.toLocaleString("en")),
    high: own.boxes.length > 20 ? 15 : 22, axis: "residual / SD", name: "boxes",
    label: `Spread of the residuals of ${node.name} in each data set: half of the rows in a box, 95% between the ends of a line.`,
  });
  for (const side of [-0.6745, 0.6745]) {
    if (side > limits[0] && side < limits[1]) svg.prepend(line(x(side), top, x(side), bottom, "mean"));
  }
  own.boxes.forEach((box, row) => {
    const [low, first, middle, third, last] = box.ends.map((value) => x(value));
    const at = y(row);
    svg.append(line(low, at, first, at, "whisker"), line(third, at, last, at, "whisker"), draw("rect", { x: first, y: at - 5.5, width: third - first, height: 11, class: "box", fill: colour(own, box.code) }), line(middle, at - 5.5, middle, at + 5.5, "tickmark"));
  });
  return svg;
}
