// The report: choosing, moving and zooming, tables, theme, downloads.

const graph = document.getElementById("graph");
const detail = document.getElementById("detail");
const find = (kind, index) => graph.querySelector(`[data-${kind}="${index}"]`);

// Choosing

let chosen = null;

function choose(kind, index, { focus = false, tell = true } = {}) {
  chosen = find(kind, index);
  for (const shape of graph.querySelectorAll(".chosen, .far")) shape.classList.remove("chosen", "far");
  chosen.classList.add("chosen");
  if (kind === "arc") {
    const { parent, child } = data.arcs[index];
    for (const end of [parent, child]) find("node", end).classList.add("chosen");
  } else {
    const near = new Set(data.nodes[index].arcs);
    for (const arc of graph.querySelectorAll(".arc")) arc.classList.toggle("far", !near.has(Number(arc.dataset.arc)));
  }
  const back = make("a", { href: "#network", class: "return" }, "↑ Network");
  detail.replaceChildren(back, ...(kind === "arc" ? arcDetail(index) : nodeDetail(index)));
  if (!tell) return;
  const heading = detail.querySelector("h3");
  document.getElementById("said").textContent = `Shown: ${heading.textContent}`;
  if (focus) heading.focus({ preventScroll: true });
  const { top } = detail.getBoundingClientRect();
  if (top < 0 || top > innerHeight * 0.75) detail.scrollIntoView({ block: "start" });
}

function chooseFrom(event, options) {
  const shape = event.target.closest("[data-arc], [data-node]");
  if (!shape) return;
  event.preventDefault();
  const kind = "arc" in shape.dataset ? "arc" : "node";
  choose(kind, Number(shape.dataset[kind]), options);
}

document.addEventListener("click", (event) => {
  if (event.target.closest("a[data-arc], a[data-node]")) chooseFrom(event, { focus: event.detail === 0 });
  else if (graph.contains(event.target) && !moved) chooseFrom(event);
});
graph.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") chooseFrom(event, { focus: true });
});
detail.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && chosen) chosen.focus();
});

// Moving and zooming: the part of the drawing that is seen, in its own pixels

const whole = graph.viewBox.baseVal;
const size = { width: whole.width, height: whole.height };
let view = null;
let touched = false;
let moved = false;

function look(next) {
  view = next;
  graph.setAttribute("viewBox", [view.x, view.y, view.width, view.height].map((v) => v.toFixed(2)).join(" "));
}

function fit() {
  const { width, height } = graph.getBoundingClientRect();
  if (!width || !height) return;
  const zoom = Math.min(1.35, width / size.width, height / size.height);
  const seen = { width: width / zoom, height: height / zoom };
  touched = false;
  look({ x: (size.width - seen.width) / 2, y: (size.height - seen.height) / 2, ...seen });
}

function toDrawing(x, y) {
  return new DOMPoint(x, y).matrixTransform(graph.getScreenCTM().inverse());
}

function zoom(factor, around) {
  const width = Math.min(Math.max(view.width / factor, 120), 6 * Math.max(size.width, 600));
  const change = width / view.width;
  const at = around || { x: view.x + view.width / 2, y: view.y + view.height / 2 };
  touched = true;
  look({ x: at.x - (at.x - view.x) * change, y: at.y - (at.y - view.y) * change, width, height: view.height * change });
}

function shift(x, y) {
  touched = true;
  look({ ...view, x: view.x + x, y: view.y + y });
}

const fingers = new Map();
graph.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  moved = fingers.size > 0;
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY, from: [event.clientX, event.clientY] });
});
addEventListener("pointermove", (event) => {
  const finger = fingers.get(event.pointerId);
  if (!finger) return;
  const others = [...fingers.values()].filter((other) => other !== finger);
  if (event.pointerType === "touch" && !others.length) return; // one finger scrolls the page
  const far = Math.hypot(event.clientX - finger.from[0], event.clientY - finger.from[1]);
  if (!moved && far < 4) return;
  moved = true;
  graph.classList.add("moving");
  const before = toDrawing(finger.x, finger.y);
  const now = toDrawing(event.clientX, event.clientY);
  if (others.length) {
    const still = others[0];
    const old = Math.hypot(finger.x - still.x, finger.y - still.y);
    zoom(Math.hypot(event.clientX - still.x, event.clientY - still.y) / (old || 1), toDrawing(still.x, still.y));
  } else {
    shift(before.x - now.x, before.y - now.y);
  }
  Object.assign(finger, { x: event.clientX, y: event.clientY });
});
for (const name of ["pointerup", "pointercancel"]) {
  addEventListener(name, (event) => {
    fingers.delete(event.pointerId);
    if (!fingers.size) graph.classList.remove("moving");
  });
}
graph.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return; // or the page could not be scrolled
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 300), toDrawing(event.clientX, event.clientY));
}, { passive: false });
// Not on the drawing itself: a listener for focus would make it a stop of the Tab key.
graph.parentElement.addEventListener("focusin", (event) => {
  const box = event.target.getBBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const inside = x > view.x && x < view.x + view.width && y > view.y && y < view.y + view.height;
  if (!inside) look({ ...view, x: x - view.width / 2, y: y - view.height / 2 });
});
document.getElementById("in").addEventListener("click", () => zoom(1.3));
document.getElementById("out").addEventListener("click", () => zoom(1 / 1.3));
document.getElementById("fit").addEventListener("click", fit);
new ResizeObserver(() => { if (!touched) fit(); }).observe(graph);
addEventListener("beforeprint", () => look({ x: 0, y: 0, ...size }));
addEventListener("afterprint", fit);

// Names that the reader's font makes wider than their box are squeezed into it.
function squeeze() {
  for (const node of graph.querySelectorAll(".node")) {
    const room = node.querySelector("rect").width.baseVal.value - 8;
    for (const words of node.querySelectorAll("tspan")) {
      if (words.getComputedTextLength() > room) {
        words.setAttribute("textLength", room);
        words.setAttribute("lengthAdjust", "spacingAndGlyphs");
      }
    }
  }
}

// Tables

function sorted(rows, column, down) {
  const key = (row) => {
    const cell = row.cells[column];
    if ("v" in cell.dataset) return Number(cell.dataset.v);
    return cell.classList.contains("n") ? null : cell.textContent;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  return rows.map((row) => [key(row), row]).sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null); // what is missing comes last
    return down ? compare(b, a) : compare(a, b);
  }).map(([, row]) => row);
}

const phone = matchMedia("(max-width: 40rem)");
for (const table of document.querySelectorAll(".table")) {
  const heads = [...table.querySelectorAll("thead th")];
  const body = table.querySelector("tbody");
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "none" ? head.classList.contains("n") : head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...sorted([...body.rows], column, down));
  }));
  const names = heads.map((head) => head.textContent);
  const label = () => { // for phones, where the head is not seen
    if (!phone.matches || !body) return;
    for (const row of body.rows) [...row.cells].forEach((cell, k) => k && cell.setAttribute("data-l", names[k]));
  };
  label();
  phone.addEventListener("change", label);
  const filter = table.querySelector("input");
  if (filter) {
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      const rows = [...body.rows];
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      const left = rows.filter((row) => !row.hidden).length;
      table.querySelector("[role=status]").textContent = left < rows.length ? `${left} of ${rows.length} rows` : `${rows.length} rows`;
    });
  }
}

// Theme

const theme = document.getElementById("theme");
function wear(name) {
  document.documentElement.dataset.theme = name;
  theme.setAttribute("aria-pressed", name === "dark");
}
wear(document.documentElement.dataset.theme);
theme.addEventListener("click", () => {
  wear(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  try { localStorage.setItem("poolbn-theme", document.documentElement.dataset.theme); } catch { /* not kept, then */ }
});

// Downloads

for (const button of document.querySelectorAll("[data-file]")) {
  button.addEventListener("click", async () => {
    const packed = Uint8Array.from(atob(document.getElementById(button.dataset.file).textContent), (letter) => letter.charCodeAt(0));
    const content = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
    const address = URL.createObjectURL(new Blob([content], { type: button.dataset.type }));
    const anchor = make("a", { href: address, download: button.dataset.name });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  });
}

// The start: the strongest arc that is sure, and the charts of all arcs and poolings

const wide = (paint) => (width) => paint(Math.min(width, 900));
const paint = (name, how) => {
  const holder = document.getElementById(name);
  if (holder) follow(holder, wide(how));
};
fit();
squeeze();
paint("spread", spread);
if (data.comparison) {
  const { heldOut, leftOut } = data.comparison;
  paint("held-out", (width) => differences(width, heldOut, "no fit", "held-out rows: log-likelihood per row, best = 0"));
  paint("left-out", (width) => differences(width, leftOut, "no population", `${sets.many} left out: log-likelihood per row, best = 0`));
}
if (data.bootstrap) paint("bars", bars);
const { first } = data.overview;
choose(first === null ? "node" : "arc", first || 0, { tell: false });
