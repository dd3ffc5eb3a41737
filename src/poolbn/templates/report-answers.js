// Answers: distributions of single variables, in one data set or over those that a row may come from.

// Draws, always the same ones: a shift of a slider shows what it changes, not chance.
function chance(seed) {
  let state = (seed * 2654435761 + 12345) >>> 0;
  const uniform = () => { // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
  let kept = null;
  const normal = () => {
    if (kept !== null) {
      const value = kept;
      kept = null;
      return value;
    }
    const size = Math.sqrt(-2 * Math.log(uniform()));
    const angle = 2 * Math.PI * uniform();
    kept = size * Math.sin(angle);
    return size * Math.cos(angle);
  };
  const gamma = (shape) => { // Marsaglia and Tsang
    if (shape < 1) return gamma(shape + 1) * uniform() ** (1 / shape);
    const d = shape - 1 / 3;
    for (;;) {
      const x = normal();
      const v = (1 + x / Math.sqrt(9 * d)) ** 3;
      if (v > 0 && Math.log(uniform()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
    }
  };
  const poisson = (mean) => {
    if (mean > 1e6) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal()));
    if (mean > 12) { // a gamma variable is the time of the k-th event
      const k = Math.floor(mean * 0.875);
      const time = gamma(k);
      if (time <= mean) return k + poisson(mean - time);
      let inside = 0; // k - 1 events, uniform until then
      for (let event = 0; event < k - 1; event += 1) inside += uniform() < mean / time;
      return inside;
    }
    let [product, count] = [uniform(), 0];
    for (const least = Math.exp(-mean); product > least; count += 1) product *= uniform();
    return count;
  };
  return { uniform, normal, gamma, poisson };
}

function drawnLevel(p, u) {
  let below = 0;
  for (let k = 0; k < p.length - 1; k += 1) {
    below += p[k];
    if (u < below) return k;
  }
  return p.length - 1;
}

// Predictors of a regression, drawn from what is known of them.
function drawnPredictors(network, node, values, j, dice) {
  const [eta, V] = predictorsAt(network, node, values, j);
  if (!V) return eta;
  const C = eta.length;
  const noise = Array.from(eta, dice.normal);
  for (let a = 0; a < C; a += 1) { // V becomes its Cholesky factor
    for (let b = 0; b <= a; b += 1) {
      let s = V[a * C + b];
      for (let k = 0; k < b; k += 1) s -= V[a * C + k] * V[b * C + k];
      if (b < a) V[a * C + b] = V[b * C + b] > 0 ? s / V[b * C + b] : 0;
      else V[a * C + a] = s > 0 ? Math.sqrt(s) : 0;
      eta[a] += V[a * C + b] * noise[b];
    }
  }
  return eta;
}

function chances(eta) {
  const p = new Float64Array(eta.length + 1);
  addSoftmax(eta, p, 1);
  return p;
}

// A value of a node given its parents.
function drawNode(network, i, values, j, dice) {
  const node = network.nodes[i];
  if (node.kind === "gaussian") {
    const [mean, scale2, df] = gaussianAt(network, node, values, j);
    const noise = dice.normal() / (df === Infinity ? 1 : Math.sqrt((2 * dice.gamma(df / 2)) / df));
    return mean + Math.sqrt(scale2) * noise;
  }
  if (node.kind === "table" || node.kind === "ordinal") return drawnLevel(levelsOf(network, node, values, j), dice.uniform());
  const eta = drawnPredictors(network, node, values, j, dice);
  if (node.size > 0) return drawnLevel(chances(eta), dice.uniform());
  const mean = Math.exp(Math.min(eta[0], Math.log(1e15)));
  return dice.poisson(node.dispersion === Infinity ? mean : (mean * dice.gamma(node.dispersion)) / node.dispersion);
}

// What a known node adds to a log weight: where its predictor is uncertain, at one that is drawn.
function drawWeight(network, i, values, j, dice) {
  const node = network.nodes[i];
  if (node.kind !== "regression") return logDensity(network, i, values, j);
  const eta = drawnPredictors(network, node, values, j, dice);
  if (node.size > 0) return Math.log(chances(eta)[values[i]]);
  return logPoint(values[i], eta[0], 0, node.dispersion, false);
}

const DRAWS = 500; // at a time
const ENOUGH = 1000; // effective draws
const mostDraws = (network) => Math.min(4000, Math.max(DRAWS, 16000 / network.prior.length));

// Likelihood weighting in data set j: rows drawn parents first, weighted by what is known.
function drawRows(network, known, j) {
  const { nodes, order } = network;
  const dice = chance(j + 1);
  const hidden = order.filter((i) => !known[i]);
  const columns = new Map(hidden.map((i) => [i, []]));
  const values = known.map((is) => (is ? is.value : NaN));
  const logs = [];
  let [logZ, p, ess] = [-Infinity, [], 0];
  while (logs.length < mostDraws(network) && !(ess > ENOUGH)) {
    for (let k = 0; k < DRAWS; k += 1) {
      let log = 0;
      for (const i of order) {
        if (!known[i]) {
          values[i] = drawNode(network, i, values, j, dice);
          columns.get(i).push(values[i]);
        } else if (!known[i].act && !nodes[i].input) log += drawWeight(network, i, values, j, dice);
      }
      logs.push(log);
    }
    ({ logZ, p } = normalised(logs));
    ess = 1 / p.reduce((sum, share) => sum + share * share, 0);
  }
  return { logZ: logZ - Math.log(logs.length), p, ess, columns };
}

// Everything that is asked of a network given what is known: {value, act} for each node, or null.
function ask(network, known) {
  const { nodes } = network;
  const all = known.map((is, i) => (nodes[i].certain ? { value: nodes[i].coef[0][0], act: true } : is));
  const [plans, weighed, rows] = [new Map(), new Map(), new Map()];

  // Continuous targets for which nothing more is enumerated or drawn are found together.
  const shape = ({ parts }) => JSON.stringify(parts.map(({ finite, node, method }) => [finite, node, method]).filter(([finite, node]) => finite.length || node !== undefined));
  const base = planOf(network, all, []);
  const alike = all.map((_, i) => i).filter((i) => !all[i] && !nodes[i].size && shape(planOf(network, all, [i])) === shape(base));
  const together = planOf(network, all, alike);
  if (shape(together) === shape(base)) for (const i of [-1, ...alike]) plans.set(i, together);
  const plan = (target) => {
    if (!plans.has(target)) plans.set(target, planOf(network, all, target < 0 ? [] : [target]));
    return plans.get(target);
  };
  const part = (one, j) => {
    const key = `${j}:${one.key}`;
    if (!weighed.has(key)) weighed.set(key, weigh(network, one, j, all.map((is) => (is ? is.value : NaN))));
    return weighed.get(key);
  };
  const drawn = (j) => {
    if (!rows.has(j)) rows.set(j, drawRows(network, all, j));
    return rows.get(j);
  };

  // The log density of what is known, in data set j.
  function logZ(target, j) {
    const { parts, closed } = plan(target);
    if (parts.some(({ method }) => method === "sampling")) return drawn(j).logZ;
    const values = all.map((is) => (is ? is.value : NaN));
    return closed.reduce((sum, i) => sum + logDensity(network, i, values, j), parts.reduce((sum, one) => sum + part(one, j).logZ, 0));
  }

  function inSet(target, j) {
    const one = plan(target).parts.find(({ hidden }) => hidden.includes(target));
    if (one.method !== "sampling") return { ...part(one, j).found.get(target), method: one.method, ess: Infinity };
    const { p, ess, columns } = drawn(j);
    const values = columns.get(target);
    if (nodes[target].size > 0) {
      const shares = new Float64Array(nodes[target].size);
      values.forEach((x, k) => { shares[x] += p[k]; });
      return { shares, method: "sampling", ess };
    }
    return { points: values.map((x, k) => [p[k], x]), method: "sampling", ess };
  }

  // P(data set | what is known), by data sets' numbers of rows.
  function weights(target = -1) {
    const logs = network.prior.map((share, j) => (share > 0 ? Math.log(share) + logZ(target, j) : -Infinity));
    return normalised(logs);
  }

  // The distribution of a variable in data set j, or with -1 where that is not known.
  function marginal(target, j) {
    if (j >= 0) return distribution(nodes[target], [[1, inSet(target, j)]]);
    const { p } = weights(target);
    const mixed = [...p].map((share, k) => [share, k]).filter(([share]) => share > 1e-17);
    // Where weights of data sets are drawn, so is what they weigh.
    const sampled = plan(target).parts.some(({ method }) => method === "sampling");
    const found = mixed.map(([share, k]) => {
      const own = inSet(target, k);
      return [share, sampled ? { ...own, method: "sampling", ess: Math.min(own.ess, drawn(k).ess) } : own];
    });
    return distribution(nodes[target], found);
  }

  const possible = (j) => (j >= 0 ? logZ(-1, j) > -Infinity : weights().logZ > -Infinity);
  return { marginal, weights, possible };
}

// Distributions

// A weighted sum of what is known of a variable in data sets, with what is asked of it.
function distribution(node, found) {
  const methods = ["exact", "quadrature", "sampling"];
  const method = methods[Math.max(...found.map(([, of]) => methods.indexOf(of.method)))];
  const ess = 1 / found.reduce((sum, [share, of]) => sum + (share * share) / of.ess, 0);
  const shared = (list, scaled) => found.flatMap(([share, of]) => (of[list] || []).map((one) => scaled(one, share)));
  if (node.size && found[0][1].shares) {
    const shares = new Float64Array(Math.max(...found.map(([, of]) => of.shares.length)));
    for (const [share, of] of found) of.shares.forEach((p, k) => { shares[k] += share * p; });
    if (node.size > 0) return { shares, method, ess, errors: shares.map((p) => Math.sqrt((p * (1 - p)) / ess)) };
    return { method, ess, ...ofPoints([...shares].map((p, k) => [p, k]), ess) };
  }
  const points = shared("points", ([p, x], share) => [share * p, x]);
  if (points.length) return { method, ess, ...ofPoints(points, ess) };
  const normals = shared("normals", ([p, ...rest], share) => [share * p, ...rest]);
  const grids = shared("grids", (grid, share) => ({ ...grid, p: grid.p.map((p) => share * p) }));
  const curves = ofCurves(normals, grids);
  return { method, ess, error: curves.sd / Math.sqrt(ess), ...curves };
}

function moments(points) {
  const mean = points.reduce((sum, [p, x]) => sum + p * x, 0);
  return { mean, sd: Math.sqrt(points.reduce((sum, [p, x, variance = 0]) => sum + p * (variance + (x - mean) ** 2), 0)) };
}

function ofPoints(points, ess) {
  const sorted = [...points].sort(([, a], [, b]) => a - b);
  const { mean, sd } = moments(points);
  const quantile = (p) => {
    let below = 0;
    for (const [share, x] of sorted) {
      below += share;
      if (below >= p - 1e-12) return x;
    }
    return sorted[sorted.length - 1][1];
  };
  return { mean, sd, quantile, points: sorted, error: sd / Math.sqrt(ess) };
}

// The sine integral: its series, the continued fraction of E1(ix), or far away a few terms.
function sineIntegral(x) {
  const t = Math.abs(x);
  if (t > 40) {
    const c = 1 / (t * t);
    const f = (1 - c * (2 - c * (24 - c * (720 - c * 40320)))) / t;
    const g = (1 - c * (6 - c * (120 - c * (5040 - c * 362880)))) * c;
    return Math.sign(x) * (Math.PI / 2 - f * Math.cos(t) - g * Math.sin(t));
  }
  if (t < 4) {
    let [term, sum] = [x, x];
    for (let k = 1; Math.abs(term) > 1e-18; k += 1) {
      term *= -(x * x) / (2 * k * (2 * k + 1));
      sum += term / (2 * k + 1);
    }
    return sum;
  }
  const divided = (a, b, c, d) => [(a * c + b * d) / (c * c + d * d), (b * c - a * d) / (c * c + d * d)];
  let b = [1, t];
  let c = [1e300, 0];
  let d = divided(1, 0, ...b);
  let h = d;
  for (let k = 1; k < 100; k += 1) { // Lentz
    const a = -k * k;
    b = [b[0] + 2, b[1]];
    d = divided(1, 0, a * d[0] + b[0], a * d[1] + b[1]);
    const over = divided(a, 0, ...c);
    c = [b[0] + over[0], b[1] + over[1]];
    const [p, q] = [c[0] * d[0] - c[1] * d[1], c[0] * d[1] + c[1] * d[0]];
    h = [h[0] * p - h[1] * q, h[0] * q + h[1] * p];
    if (Math.abs(p - 1) + Math.abs(q) < 1e-15) break;
  }
  return Math.sign(x) * (Math.PI / 2 + Math.cos(t) * h[1] - Math.sin(t) * h[0]);
}

// The share of a grid below x: the integral of the sinc functions through its weights.
function belowOnGrid({ centre, scale, p }, x) {
  const t = ((unstretch((x - centre) / scale) + 3.1) * (p.length - 1)) / 6.2;
  let sum = 0;
  for (let k = 0; k < p.length; k += 1) if (p[k] > 1e-18) sum += p[k] * (0.5 + sineIntegral(Math.PI * (t - k)) / Math.PI);
  return sum;
}

// Its density at x, between nodes on a straight line of logarithms: for drawing.
function densityOnGrid({ centre, scale, p }, x) {
  const u = unstretch((x - centre) / scale);
  const t = ((u + 3.1) * (p.length - 1)) / 6.2;
  const k = Math.floor(t);
  if (k < 0 || k >= p.length - 1 || !(p[k] > 0 && p[k + 1] > 0)) return 0;
  const log = Math.log(p[k] / LAST[k][1]) * (k + 1 - t) + Math.log(p[k + 1] / LAST[k + 1][1]) * (t - k);
  return Math.exp(log) / scale;
}

function ofCurves(normals, grids) {
  const points = normals.map(([p, mean, sd]) => [p, mean, sd * sd]);
  for (const { p, centre, scale } of grids) p.forEach((share, k) => points.push([share, centre + scale * LAST[k][0]]));
  const { mean, sd } = moments(points);
  const scales = normals.map(([p, centre, width, df]) => [p, centre, width / (df === Infinity ? 1 : spreadOf(df)), df]);
  const cdf = (x) => {
    let sum = 0;
    for (const [p, centre, scale, df] of scales) sum += p * tCdf((x - centre) / scale, df);
    for (const grid of grids) sum += belowOnGrid(grid, x);
    return sum;
  };
  const density = (x) => {
    let sum = 0;
    for (const [p, centre, scale, df] of scales) sum += p * Math.exp(logT(x, centre, scale * scale, df));
    for (const grid of grids) sum += densityOnGrid(grid, x);
    return sum;
  };
  const quantile = (p) => invert(cdf, p, mean - 3 * sd, mean + 3 * sd);
  return { mean, sd, cdf, density, quantile };
}
