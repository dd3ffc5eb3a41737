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
// Where there are many data sets, the population is on top, then a dot for each, then those in `rows`.
function forest(arc, what, width, rows = null) {
  const many = rows !== null;
  const order = rows || arc.order;
  const sure = arc.interval[0] !== null;
  const there = arc.own.filter((value) => value !== null);
  const label = `${what} in ${there.length} ${sets.many}${there.length ? `, from ${range(around(there, 0))}` : ""}; ${arc.population} ${number(arc.effect)}${sure ? `, interval ${range(arc.interval)}` : ""}.`;
  const { limits } = arc;
  const ratio = arc.scale !== "difference";
  const high = 23;
  const names = order.map((j) => (j < 0 ? "⋮" : data.levels[j]));
  const notes = order.map((j) => (j < 0 ? "" : (data.rows[j] ?? "–").toLocaleString("en")));
  const first = many ? 1 : 0; // row of the first data set
  names.splice(many ? 0 : order.length, 0, arc.short);
  notes.splice(many ? 0 : order.length, 0, data.learned.toLocaleString("en"));
  const crowd = many ? swarm(there, limits, ratio, width * 0.6) : null;
  const { svg, x, y, top, bottom } = rowsChart({
    width, names, notes, limits, label, high, top: 20 + (crowd ? crowd.height : 0), name: "forest", axis: arc.axis, given: arc.ticks, ratio,
  });
  const under = [];
  if (sure) {
    const ends = [Math.max(arc.interval[0], limits[0]), Math.min(arc.interval[1], limits[1])].map(x);
    under.push(draw("rect", { x: ends[0], y: 18, width: Math.max(0, ends[1] - ends[0]), height: bottom - 18, class: "band" }));
  }
  const none = ratio ? 1 : 0; // no effect
  if (limits[0] <= none && limits[1] >= none) under.push(line(x(none), 18, x(none), bottom, "zero"));
  if (arc.effect !== null) under.push(line(x(arc.effect), 18, x(arc.effect), bottom, "mean"));
  svg.prepend(...under);
  svg.append(text(width - 2, many ? top - 4 : 13, "rows", { "text-anchor": "end", class: "note" }));
  if (crowd) svg.append(crowd.paint(x, 18 + crowd.height));
  const aside = arc.alone ? high * 0.17 : 0;
  order.forEach((j, row) => {
    if (j < 0) return;
    const middle = y(row + first);
    if (arc.own[j] === null) {
      svg.append(text(x(limits[0]) + 4, middle + 4, "not shown apart", { class: "note" }));
      return;
    }
    if (arc.alone && arc.alone[j] !== null) {
      const at = middle - aside;
      const mark = draw("g", { class: "alone", "data-level": j, "data-value": arc.alone[j] }, interval(x, at, arc.aloneIntervals[j], limits, ""));
      if (arc.alone[j] >= limits[0] && arc.alone[j] <= limits[1]) mark.append(draw("circle", { cx: x(arc.alone[j]).toFixed(1), cy: at, r: 3.4 }));
      mark.append(draw("title", {}, `${data.levels[j]} alone: ${told(arc.alone[j], arc.aloneIntervals[j])}`));
      svg.append(mark);
    }
    const at = middle + aside;
    const inside = arc.own[j] >= limits[0] && arc.own[j] <= limits[1];
    svg.append(draw("g", { class: "pooled", "data-level": j, "data-value": arc.own[j] },
      interval(x, at, arc.ownIntervals[j], limits, ""),
      inside ? draw("circle", { cx: x(arc.own[j]).toFixed(1), cy: at, r: 3.8 }) : null,
      draw("title", {}, `${data.levels[j]}: ${told(arc.own[j], arc.ownIntervals[j])}`)));
  });
  if (arc.effect === null) return svg;
  const last = y(many ? 0 : order.length);
  const at = x(Math.min(Math.max(arc.effect, limits[0]), limits[1]));
  svg.append(draw("g", { class: "population", "data-value": arc.effect },
    interval(x, last, arc.new, limits, ""),
    interval(x, last, arc.interval, limits, "thick"),
    draw("path", { d: `M${at - 6},${last}l6,-6l6,6l-6,6z` }),
    draw("title", {}, `${arc.population}: ${told(arc.effect, arc.interval)}`)));
  return svg;
}

// A dot for each value, piled up where they are close: its height, and how to paint it above a line.
function swarm(values, limits, ratio, width) {
  const of = ratio ? Math.log : Number;
  const [low, far] = limits.map(of);
  const piles = new Map();
  const cells = Math.max(10, Math.floor(width / 6));
  for (const value of values) {
    const cell = Math.round(Math.min(1, Math.max(0, (of(value) - low) / (far - low || 1))) * cells);
    piles.set(cell, [...(piles.get(cell) || []), value]);
  }
  const most = Math.max(1, ...[...piles.values()].map((pile) => pile.length));
  const step = Math.min(5.5, 110 / most);
  const radius = Math.min(2.5, Math.max(0.8, step * 0.48));
  const paint = (x, floor) => {
    const group = draw("g", { class: "swarm" });
    const back = (cell) => low + (cell / cells) * (far - low);
    for (const [cell, pile] of piles) {
      const at = x(ratio ? Math.exp(back(cell)) : back(cell)).toFixed(1);
      pile.forEach((value, k) => group.append(draw("circle", { cx: at, cy: (floor - (k + 0.7) * step).toFixed(1), r: radius, class: "dot" })));
    }
    return group;
  };
  return { height: Math.ceil(most * step) + 8, paint };
}

// All arcs, those that differ most on top: data sets as dots, the population as a line.
function spread(width) {
  const { rows, tested } = data.overview;
  const limits = around([0, ...rows.flatMap((row) => [row.effect - row.sd, row.effect + row.sd, ...row.own])]);
  const shown = rows.length < data.arcs.length ? ` (${rows.length} of ${data.arcs.length} arcs)` : "";
  const { svg, x, y, top, bottom } = rowsChart({
    width, names: rows.map((row) => data.arcs[row.arc].name), limits, top: tested ? 20 : 6, name: "spread",
    notes: tested ? rows.map((row) => row.p) : [],
    label: `Standardised effects of ${rows.length} arcs in all ${sets.many}; the table of tests below has the numbers.`,
    axis: `standardised effect${shown}`,
  });
  if (tested) svg.append(text(width - 2, 13, "p", { "text-anchor": "end", class: "note" }));
  svg.prepend(line(x(0), top, x(0), bottom, "zero"));
  rows.forEach(({ effect, sd, own }, row) => {
    const at = y(row);
    const here = x(effect).toFixed(1);
    svg.append(line(x(effect - sd).toFixed(1), at, x(effect + sd).toFixed(1), at, "reach"));
    svg.append(line(here, at - 7, here, at + 7, "tickmark"));
    for (const value of own) {
      const other = value * effect < 0 ? " other" : "";
      svg.append(draw("circle", { cx: x(value).toFixed(1), cy: at, r: 3, class: `dot${other}` }));
    }
  });
  return svg;
}

// Differences of poolings from the best one: folds or data sets as dots, their mean, two errors.
function differences(width, { each, mean, reach }, absent, axis) {
  const { poolings, best } = data.comparison;
  const there = mean.map((value) => value !== null);
  const all = each.flatMap((values, p) => (there[p] ? [...values, mean[p] - reach[p], mean[p] + reach[p]] : []));
  const limits = around([0, ...all]);
  const told = poolings.map((name, p) => `${name} ${there[p] ? number(mean[p]) : absent}`).join(", ");
  const { svg, x, y, top, bottom, high } = rowsChart({ width, names: poolings, limits, high: 26, axis, name: "differences", label: `${axis}: ${told}.` });
  svg.prepend(draw("rect", { x: 0, y: top + best * high, width, height: high, class: "best" }), line(x(0), top, x(0), bottom, "zero"));
  poolings.forEach((name, p) => {
    const at = y(p);
    if (!there[p]) {
      svg.append(text((x(limits[0]) + x(limits[1])) / 2, at + 4, absent, { "text-anchor": "middle", class: "note" }));
      return;
    }
    for (const value of each[p]) svg.append(draw("circle", { cx: x(value).toFixed(1), cy: at, r: 3, class: "dot small" }));
    svg.append(line(x(mean[p] - reach[p]), at, x(mean[p] + reach[p]), at, "error"));
    svg.append(draw("circle", { cx: x(mean[p]).toFixed(1), cy: at, r: 4.5, class: "centre" }));
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
