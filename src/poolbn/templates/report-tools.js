// Elements, numbers, and the frames of charts. Texts only ever become text nodes.

// Long lists of one value are written as how often it is there, and it.
const data = JSON.parse(document.getElementById("numbers").textContent, (name, value) =>
  value && value.times !== undefined ? Array(value.times).fill(value.of) : value);
const { sets } = data; // what data sets are called

const capital = (words) => `${words[0].toUpperCase()}${words.slice(1)}`;

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return filled(element, attributes, children);
}

// Four digits, and never fewer than those before the point.
function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  let text = String(Number(value.toPrecision(4)));
  if (size >= 1000 && size < 1e7) text = Math.round(value).toLocaleString("en");
  else if (size > 0 && (size < 1e-4 || size >= 1e7)) text = Number(value.toPrecision(4)).toExponential();
  return text.replace(/-/g, "−");
}

function range(interval) {
  return `${number(interval[0])} to ${number(interval[1])}`;
}

function shortened(text, length) {
  if (text.length <= length) return text;
  const half = Math.floor((length - 1) / 2);
  return `${text.slice(0, length - 1 - half)}…${text.slice(text.length - half)}`;
}

function scale(low, high, start, end) {
  return (value) => start + ((value - low) / (high - low || 1)) * (end - start);
}

// Round numbers from low to high, about so many.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
  return found;
}

function text(x, y, words, attributes = {}) {
  return draw("text", { x, y, ...attributes }, words);
}

function line(x1, y1, x2, y2, name) {
  return draw("line", { x1, y1, x2, y2, class: name });
}

const LETTER = 6.7; // pixels, about

function picture(width, height, label, name) {
  const box = `0 0 ${width.toFixed(0)} ${height.toFixed(0)}`;
  return draw("svg", { viewBox: box, width: width.toFixed(0), height: height.toFixed(0), role: "img", "aria-label": label, class: name });
}

function xAxis(svg, x, limits, bottom, width, words, given = null) {
  svg.append(line(x(limits[0]), bottom, x(limits[1]), bottom, "axis"));
  let end = -Infinity;
  for (const tick of given || ticks(limits[0], limits[1], Math.max(4, width / 80))) {
    const reach = (number(tick).length * LETTER) / 2;
    if (given && x(tick) - reach < end + 4) continue; // there is no room for it
    end = x(tick) + reach;
    const at = x(tick).toFixed(1);
    svg.append(draw("g", { class: "tick" }, line(at, bottom, at, bottom + 4, ""), text(at, bottom + 17, number(tick), { "text-anchor": "middle" })));
  }
  const middle = (x(limits[0]) + x(limits[1])) / 2;
  const most = Math.max(12, Math.floor((width * 1.25) / LETTER));
  svg.append(text(middle, bottom + 35, shortened(words, most), { "text-anchor": "middle" }));
}

// A chart with a row for each name: names on the left, notes on the right, one axis below.
function rowsChart({ width, names, notes = [], limits, label, name, axis, given = null, ratio = false, room = 0, high = 22, top = 6 }) {
  const longest = Math.max(...names.map((words) => words.length), 3);
  const left = Math.min(longest * LETTER + 16, width * 0.38);
  const right = notes.length ? Math.max(room, ...notes.map((words) => words.length)) * LETTER + 14 : 10;
  const bottom = top + names.length * high;
  const svg = picture(width, bottom + 42, label, name);
  const across = scale(...limits.map(ratio ? Math.log : Number), left, width - right);
  const x = ratio ? (value) => across(Math.log(value)) : across; // ratios have an axis of logarithms
  const y = (row) => top + (row + 0.5) * high;
  names.forEach((words, row) => {
    const shown = text(left - 8, y(row) + 4, shortened(words, Math.round((left - 12) / LETTER)), { "text-anchor": "end" });
    shown.append(draw("title", {}, words));
    svg.append(shown);
    if (notes[row]) svg.append(text(width - 2, y(row) + 4, notes[row], { "text-anchor": "end", class: "note" }));
  });
  xAxis(svg, x, limits, bottom, width - left - right, axis, given);
  return { svg, x, y, top, bottom, high };
}

// A chart of two numbers.
function planeChart({ width, high, xLimits, yLimits, xWords, yWords, label, name }) {
  const marks = ticks(yLimits[0], yLimits[1], 5);
  const left = Math.max(46, 26 + LETTER * Math.max(...marks.map((tick) => number(tick).length)));
  const bottom = high - 42;
  const svg = picture(width, high, label, name);
  const x = scale(xLimits[0], xLimits[1], left + 6, width - 8);
  const y = scale(yLimits[0], yLimits[1], bottom - 6, 10);
  xAxis(svg, x, xLimits, bottom, width - left, xWords);
  svg.append(line(left, 10, left, bottom, "axis"));
  for (const tick of marks) {
    const at = y(tick).toFixed(1);
    svg.append(draw("g", { class: "tick" }, line(left - 4, at, left, at, ""), text(left - 7, Number(at) + 4, number(tick), { "text-anchor": "end" })));
  }
  const middle = (bottom + 10) / 2;
  svg.append(text(0, 0, yWords, { "text-anchor": "middle", transform: `translate(11 ${middle}) rotate(-90)` }));
  return { svg, x, y };
}

// Limits around values, with some room.
function around(values, room = 0.05) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const more = room * (high - low || Math.abs(high) || 1);
  return [low - more, high + more];
}
