// Nodes given their parents, in each data set j: densities and probabilities, `inference/locals.py` for one row.
//
// Pure functions: nothing here knows the page. Where estimates are uncertain a continuous node is
// Student's t, and probabilities are expected over a normal linear predictor.

const LOG_2PI = Math.log(2 * Math.PI);
const infinite = (df) => (df === null ? Infinity : df);

// Special functions

function logGamma(x) {
  let shift = 0;
  let at = x;
  while (at < 12) {
    shift -= Math.log(at);
    at += 1;
  }
  const c = 1 / (at * at);
  const series = (1 / 12 - c * (1 / 360 - c * (1 / 1260 - c * (1 / 1680 - c / 1188)))) / at;
  return shift + (at - 0.5) * Math.log(at) - at + LOG_2PI / 2 + series;
}

// The normal distribution function, by Hart's rational function.
function normalCdf(z) {
  const size = Math.abs(z);
  if (size > 37) return z > 0 ? 1 : 0;
  const above = [0.0352624965998911, 0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871, 221.213596169931, 220.206867912376];
  const below = [0.0883883476483184, 1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674, 637.333633378831, 793.826512519948, 440.413735824752];
  const height = Math.exp((-size * size) / 2);
  let tail = 0;
  if (size < 7.07106781186547) {
    const at = (coefficients) => coefficients.reduce((sum, c) => sum * size + c, 0);
    tail = (height * at(above)) / at(below);
  } else {
    tail = height / (size + 1 / (size + 2 / (size + 3 / (size + 4 / (size + 0.65))))) / 2.506628274631;
  }
  return z > 0 ? 1 - tail : tail;
}

// The incomplete beta function I_x(a, b) by its continued fraction.
function incompleteBeta(x, a, b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) + logGamma(a + b) - logGamma(a) - logGamma(b)) / a;
  const least = (value) => (Math.abs(value) < 1e-300 ? 1e-300 : value);
  let c = 1;
  let d = 1 / least(1 - ((a + b) * x) / (a + 1));
  let f = d;
  for (let k = 1; k < 500; k += 1) {
    let step = (k * (b - k) * x) / ((a + 2 * k - 1) * (a + 2 * k));
    d = 1 / least(1 + step * d);
    c = least(1 + step / c);
    f *= d * c;
    step = (-(a + k) * (a + b + k) * x) / ((a + 2 * k) * (a + 2 * k + 1));
    d = 1 / least(1 + step * d);
    c = least(1 + step / c);
    f *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return front * f;
}

// Student's t, or normal: its log density, and its distribution function with scale 1.
function logT(x, mean, scale2, df) {
  const square = ((x - mean) * (x - mean)) / scale2;
  if (df > 1e12) return -0.5 * (square + Math.log(scale2) + LOG_2PI);
  const c = 1 / df;
  let constant = c * (-1 / 4 + c * c * (1 / 24 - (c * c) / 20)) - LOG_2PI / 2;
  if (df < 100) constant = logGamma((df + 1) / 2) - logGamma(df / 2) - 0.5 * Math.log(Math.PI * df);
  return constant - 0.5 * Math.log(scale2) - ((df + 1) / 2) * Math.log1p(square / df);
}

function tCdf(z, df) {
  if (df > 1e12) return normalCdf(z);
  if (df >= 60 && z * z <= 0.3 * df) { // Hill's series
    const a = df - 0.5;
    const b = 48 * a * a;
    const y = a * Math.log1p((z * z) / df);
    const more = (((4 * y + 33) * y + 240) * y + 855) / (10 * (b + 0.8 * y * y + 100));
    return normalCdf(Math.sign(z) * Math.sqrt(y) * (1 + (y + 3 - more) / b));
  }
  const tail = 0.5 * incompleteBeta(df / (df + z * z), df / 2, 0.5);
  return z > 0 ? 1 - tail : tail;
}

// The x with cdf(x) = p, from a bracket: secants that keep it, and halves where they are slow.
function invert(cdf, p, from, to) {
  let [low, high] = [from, to];
  let [below, above] = [cdf(low) - p, cdf(high) - p];
  for (let width = high - low; below > 0; width *= 2) below = cdf((low -= width)) - p;
  for (let width = high - low; above < 0; width *= 2) above = cdf((high += width)) - p;
  let last = 0;
  for (let round = 0; round < 200 && high - low > 2e-15 * Math.max(Math.abs(low), Math.abs(high)); round += 1) {
    let at = round % 3 === 2 ? (low + high) / 2 : (low * above - high * below) / (above - below);
    if (!(at > low && at < high)) at = (low + high) / 2;
    const value = cdf(at) - p;
    if (value === 0) return at;
    if (value < 0) {
      [low, below] = [at, value];
      if (last < 0) above /= 2;
    } else {
      [high, above] = [at, value];
      if (last > 0) below /= 2;
    }
    last = Math.sign(value);
    if (Math.abs(value) < 1e-15) return at;
  }
  return (low + high) / 2;
}

const NORMAL_975 = 1.959963984540054;
const spreads = new Map();

// The SD of t with scale 1; below 4 degrees of freedom that of a normal with the same middle 95%.
function spreadOf(df) {
  if (df >= 4) return Math.sqrt(1 / (1 - 2 / df));
  if (!spreads.has(df)) {
    if (spreads.size > 5000) spreads.clear();
    spreads.set(df, invert((z) => tCdf(z, df), 0.975, 1.5, 15) / NORMAL_975);
  }
  return spreads.get(df);
}

// The network

function unpacked(half, q) {
  const whole = new Float64Array(q * q);
  let k = 0;
  for (let a = 0; a < q; a += 1) {
    for (let b = a; b < q; b += 1) {
      whole[a * q + b] = half[k];
      whole[b * q + a] = half[k];
      k += 1;
    }
  }
  return whole;
}

// Numbers of the page, ready to work with.
function networkOf(numbers) {
  const nodes = numbers.nodes.map((node) => {
    const size = node.levels.length || (node.count ? -1 : 0);
    const own = { ...node, size, centre: node.range[3], certain: false };
    own.z = new Float64Array(node.terms ? node.terms.length + 1 : 0); // for `design`
    if (node.kind === "table") own.sizes = node.parents.map((p) => numbers.nodes[p].levels.length);
    if (node.kind === "gaussian") {
      const q = node.terms.length + 1;
      own.cov = node.cov && node.cov.map((half) => unpacked(half, q));
      own.between = node.between && node.between.map((half) => unpacked(half, q));
      own.df = node.df.map(infinite);
      own.withinDf = node.withinDf.map(infinite);
      own.betweenDf = infinite(node.betweenDf);
      own.certain = q === 1 && !node.cov && node.scale2.every((u) => u === 0);
    }
    if (node.kind === "regression") {
      own.cov = node.cov && node.cov.map((half) => unpacked(half, node.coef[0].length * node.coef[0][0].length));
      own.dispersion = infinite(node.dispersion);
      own.eta = new Float64Array(node.coef[0].length); // for `predictorsAt`
      own.V = new Float64Array(own.eta.length ** 2);
    }
    if (node.kind === "ordinal") {
      own.cov = node.cov && node.cov.map((half) => unpacked(half, node.coef[0].length));
      own.wide = new Float64Array(node.coef[0].length); // for `orderedLevels`
    }
    return own;
  });
  return { ...numbers, nodes };
}

// 1 and the parents, until the next call for the same node.
function design(network, node, values) {
  const { z, terms } = node;
  z[0] = 1;
  for (let k = 1; k < z.length; k += 1) {
    const [parent, level] = terms[k - 1];
    if (level < 0) z[k] = values[parent] - network.nodes[parent].centre;
    else z[k] = values[parent] === level ? 1 : 0;
  }
  return z;
}

function form(z, C) {
  const q = z.length;
  let sum = 0;
  for (let a = 0; a < q; a += 1) {
    let inner = 0;
    for (let b = 0; b < q; b += 1) inner += C[a * q + b] * z[b];
    sum += inner * z[a];
  }
  return sum;
}

function dot(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k += 1) sum += a[k] * b[k];
  return sum;
}

// Squared scale and degrees of freedom from z'Cz and z'Ez (Satterthwaite).
function scaleOf(node, j, spread, between) {
  const scale2 = node.scale2[j] + Math.max(spread, 0);
  const share = scale2 > 0 ? Math.max(between, 0) / scale2 : 0;
  const df = 1 / (1 / node.df[j] + (1 - share) ** 2 / node.withinDf[j] + share ** 2 / node.betweenDf);
  return [scale2, df];
}

// Which regression of a continuous node rows have: that of a data set, or of one of its configurations of `switches`.
function stratumOf(network, node, values, j) {
  return (node.switches || []).reduce((at, p) => at * network.nodes[p].levels.length + values[p], j);
}

function gaussianAt(network, node, values, j) {
  const z = design(network, node, values);
  const at = stratumOf(network, node, values, j);
  const spread = node.cov ? form(z, node.cov[at]) : 0;
  const between = node.between ? form(z, node.between[at]) : 0;
  const [scale2, df] = scaleOf(node, at, spread, between);
  return [dot(node.coef[at], z), scale2, df];
}

// Predictors of a regression and their covariance, or null where it is certain; until the next call.
function predictorsAt(network, node, values, j) {
  const z = design(network, node, values);
  const { eta, V } = node;
  const C = eta.length;
  for (let a = 0; a < C; a += 1) eta[a] = dot(node.coef[j][a], z);
  if (!node.cov) return [eta, null];
  const q = z.length;
  const cov = node.cov[j];
  for (let a = 0; a < C; a += 1) {
    for (let b = 0; b <= a; b += 1) {
      let sum = 0;
      for (let k = 0; k < q; k += 1) {
        let inner = 0;
        for (let m = 0; m < q; m += 1) inner += cov[(a * q + k) * C * q + b * q + m] * z[m];
        sum += inner * z[k];
      }
      V[a * C + b] = sum;
      V[b * C + a] = sum;
    }
  }
  return [eta, V];
}

// Gauss-Hermite rules for the normal distribution: nodes and weights with sum 1, by Newton's method.
const rules = new Map();
function hermite(n) {
  if (rules.has(n)) return rules.get(n);
  const nodes = new Float64Array(n);
  const weights = new Float64Array(n);
  // He_n and He_{n-1}, each divided by the root of its factorial.
  const polynomial = (x) => {
    let [last, now] = [0, 1];
    for (let k = 1; k <= n; k += 1) [last, now] = [now, (x * now - Math.sqrt(k - 1) * last) / Math.sqrt(k)];
    return [now, last];
  };
  // Roots lie between sign changes; steps are shorter than their smallest distance.
  const reach = 2 * Math.sqrt(n) + 1;
  const step = 0.5 / Math.sqrt(n);
  let found = 0;
  for (let x = -reach; x < reach && found < n; x += step) {
    let [low, high] = [x, x + step];
    const sign = Math.sign(polynomial(low)[0]);
    if (sign === Math.sign(polynomial(high)[0]) && sign !== 0) continue;
    let at = (low + high) / 2;
    for (let round = 0; round < 100; round += 1) {
      const [value, before] = polynomial(at);
      if (Math.sign(value) === sign) low = at;
      else high = at;
      let next = at - value / (Math.sqrt(n) * before);
      if (!(next > low && next < high)) next = (low + high) / 2;
      const moved = Math.abs(next - at);
      at = next;
      if (moved < 1e-15) break;
    }
    nodes[found] = at;
    weights[found] = 1 / (n * polynomial(at)[1] ** 2);
    found += 1;
  }
  const total = weights.reduce((sum, w) => sum + w, 0);
  rules.set(n, [nodes, weights.map((w) => w / total)]);
  return rules.get(n);
}

const RULE_SIZES = [3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
// The largest SD of a predictor for which each is right to 2e-7: half again that for 1e-10.
const RULE_LIMITS = [0.05, 0.12, 0.28, 0.43, 0.68, 0.89, 1.2, 1.35, 1.7, 2.0].map((sd) => 1.5 * sd);

// Add probabilities times a weight; predictors become their exponentials.
function addSoftmax(eta, p, weight) {
  let top = 0;
  for (let a = 0; a < eta.length; a += 1) if (eta[a] > top) top = eta[a];
  const first = Math.exp(-top);
  let total = first;
  for (let a = 0; a < eta.length; a += 1) {
    eta[a] = Math.exp(eta[a] - top);
    total += eta[a];
  }
  p[0] += (weight * first) / total;
  for (let a = 0; a < eta.length; a += 1) p[a + 1] += (weight * eta[a]) / total;
}

// Expected probabilities of three levels or more: products of rules along a Cholesky factor.
function softmaxLevels(eta, V) {
  const C = eta.length;
  const p = new Float64Array(C + 1);
  let largest = 0;
  for (let a = 0; V && a < C; a += 1) {
    for (let b = 0; b <= a; b += 1) largest = Math.max(largest, V[a * C + a] + (b < a ? V[b * C + b] - 2 * V[a * C + b] : 0));
  }
  if (!(largest > 0)) {
    addSoftmax(eta, p, 1);
    return p;
  }
  const L = V.slice();
  for (let a = 0; a < C; a += 1) {
    for (let b = 0; b <= a; b += 1) {
      let s = L[a * C + b];
      for (let k = 0; k < b; k += 1) s -= L[a * C + k] * L[b * C + k];
      if (b < a) L[a * C + b] = L[b * C + b] > 0 ? s / L[b * C + b] : 0;
      else L[a * C + a] = s > 1e-14 * largest ? Math.sqrt(s) : 0;
    }
  }
  const most = RULE_SIZES.filter((size) => size <= 8192 ** (1 / C) + 1e-9).length - 1;
  const [at, point] = [new Float64Array(C), new Float64Array(C)];
  const add = (weight) => {
    for (let a = 0; a < C; a += 1) {
      point[a] = eta[a];
      for (let k = 0; k <= a; k += 1) point[a] += L[a * C + k] * at[k];
    }
    addSoftmax(point, p, weight);
  };
  if (most < 0) {
    for (let k = 0; k < 2 * C; k += 1) {
      at.fill(0);
      at[k % C] = k < C ? Math.sqrt(C) : -Math.sqrt(C);
      add(0.5 / C);
    }
    return p;
  }
  let rule = 0;
  while (rule < most && RULE_LIMITS[rule] < 1.5 * Math.sqrt(largest)) rule += 1;
  const [nodes, weights] = hermite(RULE_SIZES[rule]);
  const visit = (a, weight) => {
    for (let k = 0; k < nodes.length; k += 1) {
      at[a] = nodes[k];
      if (a === C - 1) add(weight * weights[k]);
      else visit(a + 1, weight * weights[k]);
    }
  };
  visit(0, 1);
  return p;
}

// Log-likelihood of a predictor but for constants, its derivative, and minus the second one.
function pointLikelihood(y, eta, theta, two) {
  if (!two && theta === Infinity) {
    const mean = Math.exp(Math.min(eta, 700));
    return [y * eta - mean, y - mean, mean];
  }
  const size = two ? 1 : y + theta;
  const shift = two ? 0 : Math.log(theta);
  const t = eta - shift;
  const e = Math.exp(-Math.abs(t));
  const p = t >= 0 ? 1 / (1 + e) : e / (1 + e);
  return [y * eta - size * (Math.max(t, 0) + Math.log1p(e) + shift), y - size * p, size * p * (1 - p)];
}

// Of a count, or of two levels (y is 0 or 1), where the predictor is normal: the trapezoidal rule.
function logPoint(y, mean, variance, theta, two) {
  let constant = 0;
  if (!two) constant = theta === Infinity ? -logGamma(y + 1) : logGamma(y + theta) - logGamma(theta) - logGamma(y + 1) + theta * Math.log(theta);
  if (!(variance > 0)) return constant + pointLikelihood(y, mean, theta, two)[0];
  const sd = Math.sqrt(variance);
  let z = two ? 0 : (sd * (Math.log(y + 0.5) - mean)) / (variance + 1 / (y + 0.5));
  for (let round = 0; round < 60; round += 1) {
    const [, slope, bend] = pointLikelihood(y, mean + sd * z, theta, two);
    const step = Math.min(Math.max((sd * slope - z) / (1 + variance * bend), -2 / sd), 2 / sd);
    z += step;
    if (Math.abs(step) < 1e-6) break;
  }
  const [value, , bend] = pointLikelihood(y, mean + sd * z, theta, two);
  const h = Math.min(0.55 / Math.sqrt(1 + variance * bend), 0.35 / sd);
  const top = value - 0.5 * z * z;
  let total = 1;
  for (const direction of [-1, 1]) {
    for (let k = 1; k < 100000; k += 1) {
      const at = z + direction * k * h;
      const term = Math.exp(pointLikelihood(y, mean + sd * at, theta, two)[0] - 0.5 * at * at - top);
      total += term;
      if (term < 1e-17 * total) break;
    }
  }
  return constant + top + Math.log((total * h) / Math.sqrt(2 * Math.PI));
}

function tableRow(node, values, j) {
  let at = 0;
  node.parents.forEach((parent, k) => { at = at * node.sizes[k] + values[parent]; });
  return node.p[j][at];
}

// Of ordered levels: differences of expected probabilities to exceed thresholds. After the coefficients of parents
// come those of an indicator for each threshold but the first.
function orderedLevels(network, node, values, j) {
  const x = design(network, node, values);
  const z = node.wide;
  z.fill(0);
  z.set(x);
  const [over, under] = [[1], [0]];
  for (let k = 0; k <= z.length - x.length; k += 1) {
    if (k > 1) z[x.length + k - 2] = 0;
    if (k > 0) z[x.length + k - 1] = 1;
    const eta = dot(node.coef[j], z);
    const variance = node.cov ? Math.max(form(z, node.cov[j]), 0) : 0;
    over.push(Math.exp(logPoint(1, eta, variance, 1, true)));
    under.push(Math.exp(logPoint(0, eta, variance, 1, true)));
  }
  over.push(0);
  under.push(1);
  const p = new Float64Array(node.size);
  node.codes.forEach((code, k) => {
    p[code] = Math.max(over[k] < 0.5 ? over[k] - over[k + 1] : under[k + 1] - under[k], 1e-300);
  });
  return p;
}

// Probabilities of all levels of a discrete node.
function levelsOf(network, node, values, j) {
  if (node.kind === "table") return tableRow(node, values, j);
  if (node.kind === "ordinal") return orderedLevels(network, node, values, j);
  const [eta, V] = predictorsAt(network, node, values, j);
  if (node.size > 2) return softmaxLevels(eta, V);
  const variance = V ? V[0] : 0;
  return [0, 1].map((y) => Math.exp(logPoint(y, eta[0], variance, 1, true)));
}

// The log density of a node at its value, given its parents.
function logDensity(network, i, values, j) {
  const node = network.nodes[i];
  if (node.kind === "gaussian") return logT(values[i], ...gaussianAt(network, node, values, j));
  if (node.kind === "table") return Math.log(tableRow(node, values, j)[values[i]]);
  if (node.kind === "ordinal") return Math.log(orderedLevels(network, node, values, j)[values[i]]);
  const [eta, V] = predictorsAt(network, node, values, j);
  if (node.size > 2) return Math.log(softmaxLevels(eta, V)[values[i]]);
  return logPoint(values[i], eta[0], V ? V[0] : 0, node.dispersion, node.size === 2);
}

// A count beyond which there is next to no probability.
function largestCount(network, node, values, j) {
  const [eta, V] = predictorsAt(network, node, values, j);
  const mean = Math.exp(Math.min(eta[0] + 9 * Math.sqrt(V ? V[0] : 0), Math.log(1e15)));
  const poisson = node.dispersion === Infinity;
  const more = poisson ? 1 : 1 + mean / node.dispersion;
  return mean + 9 * Math.sqrt(mean * more) + (poisson ? 0 : (40 * mean) / node.dispersion) + 30;
}
