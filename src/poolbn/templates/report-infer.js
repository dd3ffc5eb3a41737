// What values of some variables say of the others, `inference/plans.py` and `inference/parts.py` for one row.
//
// Hidden nodes fall into parts that are independent given what is known. In a part discrete nodes are
// enumerated, one continuous node with discrete children is integrated over by quadrature, and the
// rest is linear. Where that is too much, rows are drawn and weighted by their likelihood.

// Continuous nodes `chosen` without the `hidden` ones among them: log density, and what these are.
// Variances that depend on hidden parents follow from their mean and covariance, and these from
// the variances, by iteration; see `inference/uncertain.py`.
function linearPart(network, j, chosen, hidden) {
  if (!chosen.some((i) => network.nodes[i].switches)) return linearRows(network, chosen.map(() => j), chosen, hidden);
  const parts = new Map(); // by the strata of all nodes
  return (values) => {
    const strata = chosen.map((i) => stratumOf(network, network.nodes[i], values, j));
    const key = strata.join();
    if (!parts.has(key)) parts.set(key, linearRows(network, strata, chosen, hidden));
    return parts.get(key)(values);
  };
}

// The same where each node has one of its regressions.
function linearRows(network, strata, chosen, hidden) {
  const m = hidden.length;
  const place = new Map(hidden.map((i, k) => [i, k]));
  const told = new Uint8Array(m); // whether something below is known
  const rows = chosen.map((i, c) => {
    const node = network.nodes[i];
    const j = strata[c];
    const own = place.has(i) ? place.get(i) : -1;
    const inside = node.terms.map(([parent], t) => [t + 1, place.has(parent) ? place.get(parent) : -1]).filter(([, k]) => k >= 0);
    const a = new Float64Array(m); // effects of hidden nodes on the residual
    if (own >= 0) a[own] = 1;
    for (const [t, k] of inside) a[k] -= node.coef[j][t];
    return {
      i, j, node, own, a, open: inside.length > 0, rest: 0, w: 0,
      terms: Int32Array.from(inside, ([t]) => t),
      places: Int32Array.from(inside, ([, k]) => k),
      touches: Int32Array.from([...a.keys()].filter((k) => a[k] !== 0)),
      forms: [node.cov, node.between].map((of) => (of ? of[j] : null)),
      at: [0, 1].map(() => new Float64Array(inside.length + 1)), // parts of forms that known parents make
    };
  });
  for (const row of [...rows].reverse()) {
    for (const k of row.places) if (row.own < 0 || told[row.own]) told[k] = 1;
  }
  const touched = rows.filter((row) => row.own >= 0 || row.open);
  const busy = touched.filter((row) => row.open && row.forms[0]);
  const last = new Float64Array(touched.length).fill(-1);
  const P = new Float64Array(m * m);
  const V = new Float64Array(m * m);
  const s = new Float64Array(m);
  const h = new Float64Array(m);
  let logdet = 0;

  const factor = (row, df) => {
    if (df === Infinity) return 1;
    return row.own < 0 ? 1 + 2 / (df + 1) : spreadOf(df) ** 2;
  };

  // P = L L', V = P^-1.
  function inverse() {
    logdet = 0;
    for (let a = 0; a < m; a += 1) {
      for (let b = 0; b <= a; b += 1) {
        let sum = P[a * m + b];
        for (let k = 0; k < b; k += 1) sum -= P[a * m + k] * P[b * m + k];
        if (a === b) {
          P[a * m + a] = Math.sqrt(sum);
          logdet -= Math.log(sum);
        } else {
          P[a * m + b] = sum / P[b * m + b];
        }
      }
    }
    for (let c = 0; c < m; c += 1) { // L^-1, below the diagonal of V
      for (let a = c; a < m; a += 1) {
        let sum = a === c ? 1 : 0;
        for (let k = c; k < a; k += 1) sum -= P[a * m + k] * V[k * m + c];
        V[a * m + c] = sum / P[a * m + a];
      }
    }
    for (let a = 0; a < m; a += 1) {
      for (let b = a; b < m; b += 1) {
        let sum = 0;
        for (let k = b; k < m; k += 1) sum += V[k * m + a] * V[k * m + b];
        P[a * m + b] = sum;
      }
    }
    for (let a = 0; a < m; a += 1) {
      for (let b = a; b < m; b += 1) {
        V[a * m + b] = P[a * m + b];
        V[b * m + a] = P[a * m + b];
      }
    }
  }

  function solve() {
    let same = true;
    for (let k = 0; k < last.length; k += 1) {
      same = same && touched[k].w === last[k];
      last[k] = touched[k].w;
    }
    if (!same) {
      P.fill(0);
      for (const { a, touches, w } of touched) {
        for (let k = 0; k < touches.length; k += 1) {
          const [row, own] = [touches[k] * m, w * a[touches[k]]];
          for (let l = 0; l <= k; l += 1) P[row + touches[l]] += own * a[touches[l]];
        }
      }
      inverse();
    }
    h.fill(0);
    for (const { a, touches, w, rest } of touched) {
      for (let k = 0; k < touches.length; k += 1) h[touches[k]] -= w * a[touches[k]] * rest;
    }
    for (let a = 0; a < m; a += 1) {
      let sum = 0;
      for (let b = 0; b < m; b += 1) sum += V[a * m + b] * h[b];
      s[a] = sum;
    }
  }

  // E[z'Cz] where hidden nodes are at s with covariance V.
  function expected(C, { node, terms, places }, at) {
    const q = node.z.length;
    let sum = at[0];
    for (let a = 0; a < terms.length; a += 1) {
      const k = places[a];
      sum += 2 * s[k] * at[a + 1];
      for (let b = 0; b < terms.length; b += 1) sum += C[terms[a] * q + terms[b]] * (s[k] * s[places[b]] + V[k * m + places[b]]);
    }
    return sum;
  }

  function logVariance(row) {
    const [C, E] = row.forms;
    const [scale2, df] = scaleOf(row.node, row.j, C ? expected(C, row, row.at[0]) : 0, E ? expected(E, row, row.at[1]) : 0);
    return Math.log(scale2 * factor(row, df));
  }

  // What forms have of known parents: of 1 and of each hidden one.
  function prepare(row, f, z) {
    const [C, at, q] = [row.forms[f], row.at[f], z.length];
    for (let k = 0; k < row.terms.length; k += 1) {
      let sum = 0;
      for (let b = 0; b < q; b += 1) sum += C[row.terms[k] * q + b] * z[b];
      at[k + 1] = sum;
    }
  }

  return (values) => {
    let loglik = 0;
    const tails = hidden.map(() => null);
    for (const row of rows) {
      const z = design(network, row.node, values);
      for (const t of row.terms) z[t] = 0;
      const mean = dot(row.node.coef[row.j], z);
      for (const f of [0, 1]) row.at[f][0] = row.forms[f] ? form(z, row.forms[f]) : 0;
      const [scale2, df] = scaleOf(row.node, row.j, row.at[0][0], row.at[1][0]);
      if (row.own < 0 && !row.open) {
        loglik += logT(values[row.i], mean, scale2, df);
        continue;
      }
      row.rest = (row.own < 0 ? values[row.i] : row.node.centre) - mean;
      row.w = 1 / (scale2 * factor(row, df));
      if (row.open) {
        for (const f of [0, 1]) if (row.forms[f]) prepare(row, f, z);
      } else if (!told[row.own]) {
        tails[row.own] = [mean, scale2 * factor(row, df), df];
      }
    }
    if (!m) return { loglik, mean: [], variance: [], df: [] };
    if (!Number.isFinite(dot(s, s) + V[0])) { // after a row that was too far away
      s.fill(0);
      V.fill(0);
      last.fill(-1);
    }
    let logs = busy.map(logVariance);
    let [found, step] = [logs, busy.map(() => 1e100)];
    for (let round = 0; ; round += 1) {
      busy.forEach((row, k) => { row.w = Math.exp(-logs[k]); });
      solve();
      if (!busy.length || round === 60) break;
      const now = busy.map(logVariance);
      const next = now.map((log, k) => log - logs[k]);
      if (next.every((value) => Math.abs(value) < 1e-11)) break;
      // The secant method in several dimensions (Anderson's, depth 1).
      const change = next.map((value, k) => value - step[k]);
      const size = Math.max(dot(change, change), 1e-300);
      const back = Math.min(Math.max(dot(next, change) / size, -10), 0.5);
      const before = found;
      logs = now.map((log, k) => log - back * (log - before[k]));
      [found, step] = [now, next];
    }
    let [squares, sizes] = [0, logdet];
    for (const { a, w, rest } of touched) {
      squares += w * (rest + dot(a, s)) ** 2;
      sizes += Math.log(w);
    }
    loglik += (sizes - squares - (touched.length - m) * LOG_2PI) / 2;
    if (Number.isNaN(loglik)) loglik = -Infinity;
    const of = hidden.map((i, k) => tails[k] || [network.nodes[i].centre + s[k], V[k * m + k], Infinity]);
    return { loglik, mean: of.map(([x]) => x), variance: of.map(([, x]) => x), df: of.map(([, , x]) => x) };
  };
}

// Plans

const MOST_CONFIGURATIONS = 4000;
const COUNTED = 60; // values of a count, about

// What is to be done for what is known and some targets.
function planOf(network, known, targets) {
  const { nodes, order } = network;
  const parents = (i) => (known[i] && known[i].act ? [] : nodes[i].parents);
  const silent = (i) => known[i] && (known[i].act || nodes[i].input);
  const relevant = new Set(targets);
  known.forEach((is, i) => { if (is) relevant.add(i); });
  for (const i of [...order].reverse()) if (relevant.has(i)) parents(i).forEach((p) => relevant.add(p));
  const label = new Map();
  for (const i of relevant) if (!known[i]) label.set(i, i);
  const root = (i) => (label.get(i) === i ? i : root(label.get(i)));
  const [members, closed] = [new Map(), []];
  for (const i of order) {
    if (!relevant.has(i) || silent(i)) continue;
    const own = [i, ...parents(i)].filter((k) => label.has(k));
    if (!own.length) closed.push(i);
    else {
      members.set(i, own[0]);
      for (const k of own.slice(1)) label.set(root(k), root(own[0]));
    }
  }
  const parts = new Map();
  for (const i of order) {
    if (!label.has(i)) continue;
    if (!parts.has(root(i))) parts.set(root(i), { hidden: [], factors: [] });
    parts.get(root(i)).hidden.push(i);
  }
  for (const [i, own] of members) parts.get(root(own)).factors.push(i);
  return { parts: [...parts.values()].map((part) => methodOf(network, part)), closed };
}

function methodOf(network, { hidden, factors }) {
  const { nodes } = network;
  const is = new Set(hidden);
  const finite = hidden.filter((i) => nodes[i].size);
  const above = new Set();
  for (const i of factors) {
    if (nodes[i].size) nodes[i].parents.filter((p) => is.has(p) && !nodes[p].size).forEach((p) => above.add(p));
  }
  const endless = finite.some((i) => nodes[i].size < 0 && nodes[i].parents.some((p) => is.has(p) && nodes[p].size <= 0));
  const size = finite.reduce((product, i) => product * (nodes[i].size > 0 ? nodes[i].size : COUNTED), 1);
  const nearby = above.size ? 100 : 1; // a quadrature is as much work as so many configurations
  const drawn = above.size > 1 || endless || size * nearby > MOST_CONFIGURATIONS;
  const method = above.size ? "quadrature" : "exact";
  return { hidden, factors, finite, node: [...above][0], method: drawn ? "sampling" : method, key: `${hidden}|${factors}` };
}

// Quadrature: nodes are equidistant in u, where x = centre + scale g(u), g(u) = sinh(a sinh u) / a.

const stretch = (u) => (Math.sinh((Math.PI / 2) * Math.sinh(u)) * 2) / Math.PI;
const stretching = (u) => Math.cosh((Math.PI / 2) * Math.sinh(u)) * Math.cosh(u);
const unstretch = (g) => Math.asinh((Math.asinh((Math.PI / 2) * g) * 2) / Math.PI);
const NODES = 161;
const gridOf = (n) => Array.from({ length: n }, (_, k) => -3.1 + (6.2 * k) / (n - 1)).map((u) => [stretch(u), stretching(u) * (6.2 / (n - 1))]);
const NEGLIGIBLE = 60; // by which a log weight is below another one that counts
const FIRST = gridOf(41);
const LAST = gridOf(NODES);

function gridOver(total, centre, scale) {
  let at = { centre, scale };
  // From the middle to both sides, until nothing more can count.
  const logsOn = (nodes) => {
    const logs = new Float64Array(nodes.length).fill(-Infinity);
    const middle = (nodes.length - 1) / 2;
    let top = -Infinity;
    for (const way of [1, -1]) {
      for (let k = way > 0 ? middle : middle - 1; k >= 0 && k < nodes.length; k += way) {
        const [g, step] = nodes[k];
        const more = Math.log(at.scale * step);
        logs[k] = total(at.centre + at.scale * g, top - NEGLIGIBLE - more) + more;
        top = Math.max(top, logs[k]);
        if (Math.abs(g) > 3 && logs[k] < top - NEGLIGIBLE) break;
      }
    }
    return logs;
  };
  for (let round = 0; round < 20; round += 1) {
    const { p } = normalised(logsOn(FIRST));
    let [mean, square, steps] = [0, 0, 0];
    FIRST.forEach(([g, step], k) => {
      mean += p[k] * g;
      steps += p[k] * step;
    });
    FIRST.forEach(([g], k) => { square += p[k] * (g - mean) ** 2; });
    const sd = Math.max(Math.sqrt(square), 0.3 * steps) * at.scale;
    const moved = Math.max(Math.abs(mean * at.scale), Math.abs(sd - at.scale));
    const settled = moved <= 0.1 * at.scale;
    at = { centre: at.centre + mean * at.scale, scale: sd };
    if (settled) break;
  }
  return { ...at, logs: logsOn(LAST) };
}

function normalised(logs) {
  let top = -Infinity;
  for (const log of logs) if (log > top) top = log;
  const p = new Float64Array(logs.length);
  if (top === -Infinity) return { logZ: -Infinity, p };
  let sum = 0;
  for (let k = 0; k < p.length; k += 1) {
    p[k] = Math.exp(logs[k] - top);
    sum += p[k];
  }
  for (let k = 0; k < p.length; k += 1) p[k] /= sum;
  return { logZ: top + Math.log(sum), p };
}

// A part in data set j: the log density of what is known, and the distribution of each hidden node.
function weigh(network, part, j, values) {
  const { nodes } = network;
  const c = part.node === undefined ? -1 : part.node;
  const left = part.hidden.filter((i) => !nodes[i].size && i !== c);
  const continuous = part.factors.filter((i) => !nodes[i].size);
  // Without continuous nodes that nothing else depends on; these are found where there is weight.
  const core = new Set(part.factors.filter((i) => !left.includes(i)));
  for (const i of [...part.factors].reverse()) if (core.has(i)) nodes[i].parents.forEach((p) => core.add(p));
  const inner = continuous.filter((i) => core.has(i));
  const linear = linearPart(network, j, inner, left.filter((i) => core.has(i)));
  const whole = linearPart(network, j, continuous, left);
  const numbers = part.hidden.filter((i) => !nodes[i].size && core.has(i));
  const first = c < 0 ? null : linearPart(network, j, inner, numbers);
  const where = numbers.indexOf(c);
  // Discrete nodes that say nothing of the quadrature's node are read at its values, not enumerated.
  const read = part.finite.filter((i) => nodes[i].size > 0 && nodes[i].parents.includes(c) && !part.factors.some((k) => nodes[k].parents.includes(i)));
  const listed = part.finite.filter((i) => !read.includes(i));
  const depth = (i) => listed.indexOf(i);
  const due = listed.map(() => []);
  const [start, below] = [[], []];
  for (const i of part.factors.filter((k) => nodes[k].size && !read.includes(k))) {
    const own = [i, ...nodes[i].parents];
    const at = Math.max(...own.map(depth));
    if (own.includes(c)) below.push(i);
    else if (at < 0) start.push(i);
    else if (depth(i) !== at) due[at].push(i); // else it is what the levels at this depth have
  }
  const logs = [];
  const leaves = []; // values of finite nodes, and what is linear
  const grids = [];

  const totalAt = (x, least) => { // below `least` it need not be right: probabilities are at most 1
    values[c] = x;
    let log = linear(values).loglik;
    for (const i of below) if (log > least) log += logDensity(network, i, values, j);
    return log;
  };

  function leaf(log) {
    const levels = listed.map((i) => values[i]);
    if (c < 0) {
      const given = whole(values);
      logs.push(log + given.loglik);
      leaves.push({ levels, given });
      return;
    }
    const guess = first(values);
    const grid = gridOver(totalAt, guess.mean[where], Math.sqrt(guess.variance[where]));
    grids.push({ centre: grid.centre, scale: grid.scale, from: logs.length });
    const top = grid.logs.reduce((most, own) => Math.max(most, own), -Infinity);
    LAST.forEach(([g], k) => {
      values[c] = grid.centre + grid.scale * g;
      logs.push(log + grid.logs[k]);
      const counts = grid.logs[k] > top - NEGLIGIBLE;
      const chances = counts ? read.map((i) => levelsOf(network, nodes[i], values, j)) : null;
      leaves.push({ levels, chances, given: left.length && counts ? whole(values) : null });
    });
    values[c] = NaN;
  }

  function enumerate(k, log) {
    if (log === -Infinity) return;
    if (k === listed.length) {
      leaf(log);
      return;
    }
    const i = listed[k];
    const apart = below.includes(i); // its probabilities depend on the quadrature's node
    const count = nodes[i].size < 0;
    const size = count ? Math.ceil(largestCount(network, nodes[i], values, j)) : nodes[i].size;
    const p = count || apart ? null : levelsOf(network, nodes[i], values, j);
    for (let x = 0; x < size; x += 1) {
      values[i] = x;
      let own = log;
      if (!apart) own += count ? logDensity(network, i, values, j) : Math.log(p[x]);
      for (const other of due[k]) if (own > -Infinity) own += logDensity(network, other, values, j);
      enumerate(k + 1, own);
    }
    values[i] = NaN;
  }

  enumerate(0, start.reduce((sum, i) => sum + logDensity(network, i, values, j), 0));
  const { logZ, p } = normalised(logs);
  const found = new Map();
  read.forEach((i, k) => {
    const shares = new Float64Array(nodes[i].size);
    leaves.forEach(({ chances }, at) => { if (chances) chances[k].forEach((share, x) => { shares[x] += p[at] * share; }); });
    found.set(i, { shares });
  });
  listed.forEach((i, k) => {
    const size = leaves.reduce((most, { levels }) => Math.max(most, levels[k] + 1), Math.max(nodes[i].size, 1));
    const shares = new Float64Array(size);
    leaves.forEach(({ levels }, at) => { shares[levels[k]] += p[at]; });
    found.set(i, { shares });
  });
  left.forEach((i, k) => {
    const normals = [];
    leaves.forEach(({ given }, at) => { if (given) normals.push([p[at], given.mean[k], Math.sqrt(given.variance[k]), given.df[k]]); });
    found.set(i, { normals, grids: [] });
  });
  if (c >= 0) found.set(c, { normals: [], grids: grids.map(({ from, ...grid }) => ({ ...grid, p: p.slice(from, from + LAST.length) })) });
  return { logZ, found };
}
