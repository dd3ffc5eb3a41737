// What if: controls for values and interventions, and what they make of all variables.

const RANKS = 30; // data sets in the chart of one outcome
const POINTS = 73; // of a curve

function whatIf(numbers) {
  const network = networkOf(numbers);
  const { nodes } = network;
  const home = document.getElementById("whatif-tools");
  const population = network.new === null ? -1 : network.new;
  const nameOf = (j) => (j < 0 ? "all together" : j === network.new ? `a new ${sets.one}` : network.sets[j]);
  const first = nodes.map((node) => (node.levels.length ? 0 : node.range[3]));
  const fresh = () => nodes.map((node, i) => (node.input ? { value: first[i], act: false } : null));
  const shown = nodes.map((node) => node.input || !node.certain);
  const expected = [...first]; // where controls of what is not known stand
  let known = fresh();
  let set = network.sets.length ? 0 : population;
  const targets = nodes.map((_, i) => i).filter((i) => !nodes[i].input && !nodes[i].certain);
  let [outcome, level] = [targets[targets.length - 1], 0];

  // Controls

  const options = (names, values) => names.map((name, k) => make("option", { value: values[k] }, name));
  const choice = (label, names, values, name) => {
    const select = make("select", { id: name }, ...options(names, values));
    return [make("label", {}, `${label} `, select), select];
  };
  const offered = [...network.sets.keys()];
  if (network.new !== null) offered.push(network.new);
  if (network.sets.length > 1) offered.push(-1);
  const [setLabel, setChoice] = choice(capital(sets.one) + (sets.one === network.group.toLowerCase() ? "" : ` (${network.group})`), offered.map((j) => (j < 0 ? "unknown" : nameOf(j))), offered, "whatif-set");
  const reset = make("button", { type: "button", id: "whatif-reset" }, "Reset");
  const status = make("p", { id: "whatif-status", role: "status" });
  const note = make("p", { class: "soft", id: "whatif-note" });
  const list = make("div", { class: "whats" });
  const [outLabel, outChoice] = choice("Outcome", targets.map((i) => nodes[i].name), targets, "whatif-outcome");
  const [levelLabel, levelChoice] = choice("level", [], [], "whatif-level");
  const strip = make("div", { class: "chart", id: "whatif-strip" });
  home.append(
    make("div", { class: "bar" }, setLabel, reset),
    status,
    note,
    make("ul", { class: "key" },
      key("now", `now, in the chosen ${sets.one}`),
      key("before", "before anything was set"),
      key("others", `now, ${population < 0 ? `in all ${sets.many} together` : `in a new ${sets.one}: the population`}`),
      make("li", {}, "numbers: mean (95% interval), or probabilities")),
    make("div", { class: "whatif" },
      make("div", { class: "side" },
        make("h3", {}, `Each ${sets.one} beside the population`),
        make("div", { class: "bar" }, outLabel, levelLabel),
        make("p", { class: "soft" }, `Means with 95% intervals, or probabilities. Hollow: before anything was set.${network.sets.length > RANKS ? ` The first ${RANKS} of ${network.sets.length} ${sets.many}.` : ""}`),
        make("div", { class: "reel", tabindex: 0, role: "region", "aria-label": `One outcome in each ${sets.one}` }, strip)),
      list),
  );

  const rows = nodes.map((node, i) => {
    if (!shown[i]) return null;
    const name = `whatif-${i}`;
    const title = make("h4", { id: name }, node.name);
    const act = (words, how, help) => make("button", { type: "button", "data-how": how, "aria-pressed": "false", "aria-label": `${words} ${node.name}`, title: help }, words);
    const buttons = node.input ? [] : [
      act("Set", "set", "It is known to have this value"),
      act("Intervene", "do", "It is made to have this value, whatever its causes are"),
      act("Clear", "clear", "It is not known"),
    ];
    const fields = [];
    const [low, high, step] = node.range;
    if (node.levels.length) fields.push(make("select", { "aria-labelledby": name }, ...(node.input ? [] : options(["not known"], [""])), ...options(node.levels, node.levels.map((_, k) => k))));
    else {
      if (high > low) fields.push(make("input", { type: "range", min: low, max: high, step, "aria-labelledby": name }));
      fields.push(make("input", { type: "number", step: node.count ? 1 : "any", min: node.count ? 0 : null, "aria-labelledby": name }));
    }
    const told = make("p", { class: "told" });
    const figure = make("div", { class: "chart" });
    const row = make("div", { class: node.levels.length ? "what levels" : "what", role: "group", "aria-labelledby": name, "data-what": i },
      make("div", { class: "head" }, title, make("div", { class: "tools" }, ...buttons)),
      make("div", { class: "field" }, ...fields), figure, told);
    list.append(row);
    const clear = () => {
      if (!known[i] || node.input) return;
      known[i] = null;
      changed(i);
    };
    const put = (text, how) => {
      const next = text === "" ? NaN : Number(text);
      if (node.levels.length && text === "") clear();
      if (!Number.isFinite(next) || (node.count && (next < 0 || next % 1))) return;
      known[i] = { value: next, act: how === undefined ? Boolean(known[i] && known[i].act) : how };
      changed(i);
    };
    for (const field of fields) field.addEventListener(field.type === "number" ? "change" : "input", () => put(field.value));
    for (const button of buttons) {
      const { how } = button.dataset;
      // Levels start from the most probable one.
      button.addEventListener("click", () => (how === "clear" ? clear() : put(String(known[i] ? known[i].value : expected[i]), how === "do")));
    }
    const show = () => {
      const value = known[i] ? known[i].value : node.levels.length ? "" : expected[i];
      for (const field of fields) if (field !== document.activeElement || Number(field.value) !== value) field.value = value;
      const state = !known[i] ? "clear" : known[i].act ? "do" : "set";
      row.classList.toggle("known", state !== "clear" && !node.input);
      row.classList.toggle("acted", state === "do");
      for (const button of buttons) {
        if (button.dataset.how === "clear") button.disabled = state === "clear";
        else button.setAttribute("aria-pressed", String(button.dataset.how === state));
      }
    };
    return { figure, told, show };
  });

  // Answers

  const askedBefore = new Map();
  function before() {
    const inputs = known.map((is, i) => (nodes[i].input ? is : null));
    const name = JSON.stringify(inputs);
    if (!askedBefore.has(name)) {
      if (askedBefore.size > 50) askedBefore.clear();
      askedBefore.set(name, remembered(ask(network, inputs)));
    }
    return askedBefore.get(name);
  }

  function remembered(answers) {
    const found = new Map();
    return (i, j) => {
      const name = `${i},${j}`;
      if (!found.has(name)) found.set(name, answers.marginal(i, j));
      return found.get(name);
    };
  }

  let waiting = 0;
  let said = 0;
  function changed(i) {
    if (!waiting) {
      waiting = requestAnimationFrame(() => {
        waiting = 0;
        render();
      });
    }
    clearTimeout(said);
    said = setTimeout(() => { document.getElementById("said").textContent = spoken(i); }, 600);
  }

  let [last, painted, later] = [null, null, 0];
  function spoken(i) {
    const what = known[i] ? `${nodes[i].name} ${how(i)} ${valueWords(i)}. ` : i >= 0 ? `${nodes[i].name} cleared. ` : "";
    return known[outcome] || !last ? (last ? what : status.textContent) : `${what}${nodes[outcome].name} in ${nameOf(set)}: ${summaryOf(nodes[outcome], last(outcome, set))}.`;
  }

  const how = (i) => (known[i].act ? "brought to" : "set to");
  const valueWords = (i) => (nodes[i].levels.length ? nodes[i].levels[known[i].value] : number(known[i].value));

  function render() {
    const answers = ask(network, known);
    const possible = answers.possible(set);
    const now = remembered(answers);
    last = possible ? now : null;
    const told = nodes.map((_, i) => i).filter((i) => known[i] && !nodes[i].input);
    const words = told.map((i) => `${nodes[i].name} ${how(i)} ${valueWords(i)}`);
    status.classList.toggle("warning", !possible);
    status.textContent = possible ? (words.length ? `${words.join(", ")}.` : "Nothing is set.") : `These values cannot occur together in ${nameOf(set)}: ${words.join(", ")}. Clear one of them.`;
    const start = before();
    const beside = population !== set && answers.possible(population);
    const methods = new Set();
    rows.forEach((row, i) => {
      if (!row) return;
      if (!known[i] && possible) expected[i] = standing(nodes[i], now(i, set));
      row.show();
      if (known[i] || !possible) {
        row.figure.replaceChildren(...(known[i] && !nodes[i].levels.length && !nodes[i].input ? [valueMark(nodes[i], known[i].value, start(i, set))] : []));
        row.told.textContent = nodes[i].input ? "an input: it has no distribution" : known[i] ? `${how(i)} ${valueWords(i)}` : "";
        return;
      }
      const [own, old, other] = [now(i, set), start(i, set), beside ? now(i, population) : null];
      methods.add(own.method);
      if (own.method === "sampling") methods.add(own.ess);
      row.figure.replaceChildren(...(own.shares ? [shareBars(nodes[i], own, told.length ? old : null, other)] : [curves(nodes[i], own, told.length ? old : null, other)]));
      const change = told.length && summaryOf(nodes[i], own) !== summaryOf(nodes[i], old);
      // Bars have their numbers, but not how far these may be off.
      row.told.replaceChildren(own.shares && own.method !== "sampling" ? "" : summaryOf(nodes[i], own), ...(change ? [make("span", { class: "soft" }, ` before: ${summaryOf(nodes[i], old)}`)] : []));
    });
    note.textContent = howFound(methods);
    painted = (width) => ranks(Math.min(width, 760), now, start, answers);
    clearTimeout(later); // a slider that moves on need not wait for all data sets
    later = setTimeout(() => strip.clientWidth && strip.replaceChildren(painted(strip.clientWidth)), 0);
  }

  function howFound(methods) {
    const least = Math.min(...[...methods].filter((of) => typeof of === "number"));
    if (methods.has("sampling")) return `Where ± stands, answers are approximate: means of weighted random draws, worth at least ${Math.floor(least)} independent ones, with their standard errors.`;
    return "";
  }

  // One outcome in all data sets

  function ranks(width, now, start, answers) {
    const node = nodes[outcome];
    levelLabel.hidden = !node.levels.length;
    const order = network.new === null ? [] : [network.new];
    if (network.sets.length > 1) order.push(-1);
    order.push(...[...network.sets.keys()].slice(0, RANKS));
    if (known[outcome]) return make("p", { class: "soft" }, `${node.name} has a value. Clear it, or choose another outcome.`);
    const there = order.map((j) => answers.possible(j));
    const read = (of) => (of.shares ? [of.shares[level], of.shares[level], of.shares[level]] : [of.mean, of.quantile(0.025), of.quantile(0.975)]);
    const found = order.map((j, k) => (there[k] ? read(now(outcome, j)) : null));
    const old = order.map((j) => read(start(outcome, j)));
    const axis = node.levels.length ? `probability of ${node.levels[level]}` : node.name;
    const limits = node.levels.length ? [0, Math.min(1, 1.1 * Math.max(...[...found, ...old].filter((of) => of).map(([p]) => p)))] : around([...found, ...old].filter((of) => of).flat());
    const notes = found.map((of, k) => (of ? (node.levels.length ? percentOf(of[0]) : digits(of[0], now(outcome, order[k]).sd)) : "impossible"));
    const label = `${axis}: ${order.map((j, k) => `${nameOf(j)} ${notes[k]}`).join(", ")}.`;
    const { svg, x, y } = rowsChart({ width, names: order.map(nameOf), notes, limits, label, high: 24, axis, name: "ranks" });
    order.forEach((j, row) => {
      const at = y(row);
      svg.append(draw("circle", { cx: x(old[row][0]).toFixed(1), cy: at, r: 3.6, class: "was" }));
      if (!found[row]) return;
      const [value, low, high] = found[row];
      svg.append(draw("g", { class: j === network.new || j < 0 ? "population" : "pooled", "data-set": j, "data-value": value },
        interval(x, at, [low, high], limits, ""), draw("circle", { cx: x(value).toFixed(1), cy: at, r: j === set ? 5.5 : 4 })));
    });
    return svg;
  }

  function chooseOutcome(i) {
    outcome = i;
    level = Math.max(0, nodes[i].levels.length - 1);
    levelChoice.replaceChildren(...options(nodes[i].levels, nodes[i].levels.map((_, k) => k)));
    levelChoice.value = level;
    outChoice.value = i;
  }

  setChoice.addEventListener("change", () => {
    set = Number(setChoice.value);
    changed(-1);
  });
  outChoice.addEventListener("change", () => {
    chooseOutcome(Number(outChoice.value));
    changed(-1);
  });
  levelChoice.addEventListener("change", () => {
    level = Number(levelChoice.value);
    changed(-1);
  });
  reset.addEventListener("click", () => {
    known = fresh();
    changed(-1);
  });
  chooseOutcome(outcome);
  render();
  follow(strip, (width) => painted(width));
}

// Words and charts of one variable

const percentOf = (p) => (p > 0 && p < 0.001 ? "< 0.1%" : p < 1 && p > 0.999 ? "> 99.9%" : `${(100 * p).toFixed(1)}%`);

// A number to a hundredth of a standard deviation, about.
function digits(value, sd) {
  const after = 1 - Math.floor(Math.log10(sd > 0 ? sd : 1));
  if (!(Math.abs(after) < 12)) return number(value);
  const least = 10 ** -Math.max(after, 0);
  const rounded = Math.round(value / least) * least;
  return (rounded || 0).toLocaleString("en", { minimumFractionDigits: Math.max(after, 0), maximumFractionDigits: Math.max(after, 0) }).replace("-", "−");
}

function summaryOf(node, found) {
  if (found.shares) {
    const off = (k) => (found.method === "sampling" ? ` ± ${(100 * found.errors[k]).toFixed(1)}` : "");
    const order = [...found.shares.keys()].sort((a, b) => found.shares[b] - found.shares[a]).slice(0, 3);
    return order.map((k) => `${node.levels[k]} ${percentOf(found.shares[k])}${off(k)}`).join(", ") + (node.levels.length > 3 ? ", …" : "");
  }
  if (!found.summary) {
    const off = found.method === "sampling" ? ` ± ${number(Number(found.error.toPrecision(2)))}` : "";
    const [low, high] = [0.025, 0.975].map((p) => (node.count ? number(found.quantile(p)) : digits(found.quantile(p), found.sd)));
    found.summary = `${digits(found.mean, found.sd)}${off} (${low} to ${high})`;
  }
  return found.summary;
}

// Where a control stands: at the mean, or the most probable level.
function standing(node, found) {
  if (found.shares) return found.shares.indexOf(Math.max(...found.shares));
  const step = node.range[2] || 1e-6;
  return Number((step * Math.round(found.mean / step)).toPrecision(12));
}

function key(name, words) {
  const mark = name === "others" ? draw("rect", { x: 1, y: 3, width: 26, height: 9, class: "others" }) : line(1, 7, 27, 7, name);
  return make("li", {}, draw("svg", { width: 28, height: 14, "aria-hidden": "true" }, mark), ` ${words}`);
}

const WHAT = { width: 300, height: 46 };

function frameOf(node, label) {
  const [low, high] = node.range;
  const more = 0.08 * (high - low || Math.abs(low) || 1);
  const limits = [node.count ? -0.7 : low - more, high + more];
  const svg = draw("svg", { viewBox: `0 0 ${WHAT.width} ${WHAT.height}`, role: "img", "aria-label": label, class: "curves", preserveAspectRatio: "none" });
  const bottom = WHAT.height - 2;
  svg.append(draw("line", { x1: 0, x2: WHAT.width, y1: bottom, y2: bottom, class: "axis" }));
  return { svg, limits, x: scale(limits[0], limits[1], 0, WHAT.width), bottom };
}

// Heights of a density at points from one limit to the other.
function heights(node, found, limits) {
  const step = (limits[1] - limits[0]) / (POINTS - 1);
  const at = Array.from({ length: POINTS }, (_, k) => limits[0] + k * step);
  if (found.density) return at.map((value) => [value, found.density(value)]);
  const bins = new Float64Array(POINTS);
  const width = Math.max(3 * step, 0.5 * found.sd * found.points.length ** -0.2); // of a normal kernel
  const reach = Math.ceil((3 * width) / step);
  for (const [p, value] of found.points) {
    const k = Math.round((value - limits[0]) / step);
    if (k >= 0 && k < POINTS) bins[k] += p;
  }
  return at.map((value, k) => {
    let sum = 0;
    for (let l = Math.max(0, k - reach); l <= Math.min(POINTS - 1, k + reach); l += 1) sum += bins[l] * Math.exp(-0.5 * (((k - l) * step) / width) ** 2);
    return [value, sum / (width * Math.sqrt(2 * Math.PI))];
  });
}

function curves(node, own, old, other) {
  const { svg, limits, x, bottom } = frameOf(node, `${node.name}: ${summaryOf(node, own)}`);
  const found = [other, old, own];
  if (node.count) {
    const tops = found.map((of) => of && countShares(of, limits[1]));
    const top = Math.max(...tops.flatMap((of) => of || [0]));
    const wide = x(1) - x(0);
    tops.forEach((of, k) => of && of.forEach((p, value) => {
      const high = (p / top) * (bottom - 3);
      if (p > 1e-4) svg.append(draw("rect", { x: (x(value) - 0.4 * wide).toFixed(1), y: (bottom - high).toFixed(1), width: (0.8 * wide).toFixed(1), height: high.toFixed(1), class: ["others", "before", "now"][k] }));
    }));
    return svg;
  }
  const drawn = found.map((of) => of && heights(node, of, limits));
  const top = Math.max(...drawn.flatMap((of) => (of || []).map(([, h]) => h)));
  const y = (h) => (bottom - (h / (top || 1)) * (bottom - 3)).toFixed(1);
  drawn.forEach((of, k) => {
    if (!of) return;
    const way = of.map(([value, h]) => `${x(value).toFixed(1)},${y(h)}`).join("L");
    svg.append(draw("path", k ? { d: `M${way}`, class: ["", "before", "now"][k] } : { d: `M${x(limits[0])},${bottom}L${way}L${x(limits[1])},${bottom}z`, class: "others" }));
  });
  const ends = [own.quantile(0.025), own.quantile(0.975)].map((value) => x(Math.min(Math.max(value, limits[0]), limits[1])));
  svg.append(draw("line", { x1: ends[0].toFixed(1), x2: ends[1].toFixed(1), y1: bottom, y2: bottom, class: "reach" }));
  const middle = x(own.mean).toFixed(1);
  svg.append(draw("line", { x1: middle, x2: middle, y1: bottom - 6, y2: bottom, class: "reach" }));
  return svg;
}

function countShares(found, most) {
  const shares = new Float64Array(Math.floor(most) + 1);
  for (const [p, value] of found.points) if (value < shares.length) shares[value] += p;
  return [...shares];
}

// Where a value is that was set, on what there was before.
function valueMark(node, value, old) {
  const { svg, limits, x, bottom } = frameOf(node, `${node.name}: ${number(value)}`);
  if (!node.count) {
    const of = heights(node, old, limits);
    const top = Math.max(...of.map(([, h]) => h)) || 1;
    svg.append(draw("path", { d: `M${of.map(([at, h]) => `${x(at).toFixed(1)},${(bottom - (h / top) * (bottom - 3)).toFixed(1)}`).join("L")}`, class: "before" }));
  }
  const at = x(Math.min(Math.max(value, limits[0]), limits[1])).toFixed(1);
  svg.append(draw("line", { x1: at, x2: at, y1: 2, y2: bottom, class: "value" }));
  return svg;
}

function shareBars(node, own, old, other) {
  const bar = (k) => {
    const at = (of) => (100 * of.shares[k]).toFixed(2);
    const marks = [make("span", { class: "now", style: `width:${at(own)}%` })];
    if (other) marks.unshift(make("span", { class: "others", style: `width:${at(other)}%` }));
    if (old) marks.push(make("span", { class: "before", style: `left:${at(old)}%` }));
    return make("li", {}, make("span", { class: "level" }, node.levels[k]), make("span", { class: "share", "aria-hidden": "true" }, ...marks), make("span", { class: "n" }, percentOf(own.shares[k])));
  };
  return make("ul", { class: "shares" }, ...node.levels.map((_, k) => bar(k)));
}

// It is made when a reader comes near: answers in many data sets take a moment.
if (document.getElementById("whatif-tools")) {
  const near = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    whatIf(data.whatif);
  }, { rootMargin: "0px 0px 600px 0px" });
  near.observe(document.getElementById("whatif"));
}
