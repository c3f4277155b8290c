const data = JSON.parse(element("data").textContent);
function bytes(text) { const raw = atob(text), out = new Uint8Array(raw.length); for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i); return out; }
const floats = text => new Float64Array(bytes(text).buffer), integers = text => new Uint32Array(bytes(text).buffer);
const lanes = data.lanes.map(lane => {
  const requests = integers(lane.slice_requests);
  return { name: lane.name, gone: lane.gone, slices: intervals(lane.slices.map(floats)), bursts: intervals(lane.bursts.map(floats)),
    sliceNames: integers(lane.slice_names), requests, counted: sums(requests), budgets: lane.budgets.map(floats), inputs: floats(lane.inputs), exposes: floats(lane.exposes) };
});
// The text is not needed any more, and is the most of the page's memory.
data.lanes = null; element("data").remove();
const canvas = element("view"), pen = canvas.getContext("2d"), stage = element("stage");
const LANE = 46, TOP = 26, LABEL = 150, LEAST = 2000;
const span = Math.max(data.span_ns, LEAST);
let from = 0, to = span, marks = { a: null, b: null }, width = 0, colours = {}, pending = false;
const x = t => LABEL + (t - from) / (to - from) * (width - LABEL), timeAt = px => from + (px - LABEL) / (width - LABEL) * (to - from);
function readColours() {
  const names = ["paper", "ink", "soft", "line", "raised", "served", "burst", "budget", "deadline", "input", "a", "b"];
  colours = Object.fromEntries(names.map(name => [name, colour(name)]));
}
function ask() { if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; draw(); }); } }
function show(begin, end) {
  const length = Math.min(Math.max(end - begin, LEAST), span);
  from = Math.min(Math.max((begin + end - length) / 2, 0), span - length); to = from + length; ask();
}
// One column of pixels at a time where intervals are denser than pixels, so the work depends on the width alone.
function drawIntervals(some, top, height, colour) {
  const { begins, ends } = some, first = lower(ends, from), last = lower(begins, to);
  pen.fillStyle = colour;
  if (last - first < 2 * (width - LABEL)) {
    for (let i = first; i < last; i++) { const left = Math.max(x(begins[i]), LABEL), right = Math.min(x(ends[i]), width); pen.fillRect(left, top, Math.max(right - left, 0.7), height); }
    return;
  }
  for (let px = LABEL; px < width; px++) {
    const part = covered(some, timeAt(px), timeAt(px + 1)) / (timeAt(px + 1) - timeAt(px));
    if (part > 0) { pen.globalAlpha = Math.max(0.25, Math.min(1, part)); pen.fillRect(px, top, 1, height); }
  }
  pen.globalAlpha = 1;
}
function ticks(times, top, height, colour) {
  pen.fillStyle = colour;
  let before = -9;
  for (let i = lower(times, from); i < times.length && times[i] <= to; i++) { const at = x(times[i]); if (at - before >= 1) { pen.fillRect(at, top, 1, height); before = at; }
    else i = Math.max(i, lower(times, timeAt(before + 1)) - 1); }
}
function drawBudget(lane, top) {
  const [times, left, deadlines] = lane.budgets;
  if (!times.length) return;
  let most = 1; const first = Math.max(lower(times, from) - 1, 0), last = Math.min(lower(times, to) + 1, times.length);
  const step = Math.max(1, Math.floor((last - first) / (4 * width)));
  for (let i = first; i < last; i += step) most = Math.max(most, left[i]);
  pen.strokeStyle = colours.budget; pen.beginPath();
  for (let i = first; i < last; i += step) { const px = Math.max(x(times[i]), LABEL), py = top + LANE - 6 - 12 * Math.max(0, left[i]) / most; i === first ? pen.moveTo(px, py) : (pen.lineTo(px, py)); }
  pen.stroke();
  pen.fillStyle = colours.deadline; let before = -9;
  for (let i = first; i < last; i += step) { const px = x(deadlines[i]); if (px > LABEL && px < width && px - before >= 2) { pen.fillRect(px, top + 4, 1, LANE - 10); before = px; } }
}
function draw() {
  const scale = devicePixelRatio || 1, height = TOP + LANE * lanes.length + 4;
  width = Math.max(stage.clientWidth, LABEL + 50);
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) { canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale); canvas.style.height = height + "px"; }
  pen.setTransform(scale, 0, 0, scale, 0, 0); pen.fillStyle = colours.paper; pen.fillRect(0, 0, width, height); pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle";
  const step = stepFor(to - from, width - LABEL, 90);
  pen.textAlign = "center";
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) { pen.fillStyle = colours.line; pen.fillRect(x(t), TOP - 6, 1, height); pen.fillStyle = colours.soft; pen.fillText(timeText(t, step), Math.min(Math.max(x(t), LABEL + 24), width - 36), 10); }
  lanes.forEach((lane, i) => {
    const top = TOP + i * LANE;
    if (i % 2) { pen.fillStyle = colours.raised; pen.globalAlpha = 0.6; pen.fillRect(LABEL, top, width, LANE); pen.globalAlpha = 1; }
    drawIntervals(lane.bursts, top + 8, 9, colours.burst);
    drawIntervals(lane.slices, top + 17, 16, colours.served);
    drawBudget(lane, top); ticks(lane.exposes, top + 36, 5, colours.soft); ticks(lane.inputs, top + 3, 5, colours.input);
  });
  pen.fillStyle = colours.paper; pen.fillRect(0, 0, LABEL - 1, height); pen.textAlign = "left";
  lanes.forEach((lane, i) => { pen.fillStyle = lane.gone ? colours.soft : colours.ink; pen.fillText(lane.name.length > 21 ? lane.name.slice(0, 20) + "…" : lane.name, 8, TOP + i * LANE + LANE / 2); });
  for (const name of ["a", "b"]) if (marks[name] !== null && marks[name] >= from && marks[name] <= to) { pen.fillStyle = colours[name]; pen.fillRect(x(marks[name]), TOP - 12, 1.5, height); pen.fillText(name.toUpperCase(), x(marks[name]) + 3, TOP - 8); }
  statistics();
}
function statistics() {
  const both = marks.a !== null && marks.b !== null, begin = both ? Math.min(marks.a, marks.b) : from, end = both ? Math.max(marks.a, marks.b) : to;
  element("what").textContent = both ? "A to B: " + duration(marks.b - marks.a) : "Shown: " + duration(end - begin) + (marks.a !== null ? ", A at " + timeText(marks.a, (end - begin) / 1000) : "");
  const rows = lanes.map(lane => {
    const served = covered(lane.slices, begin, end), busy = covered(lane.bursts, begin, end);
    const first = lower(lane.slices.ends, begin), last = lower(lane.slices.begins, end);
    // The longest burst that ends here; of many, a sample would lie, so all are looked at up to a million.
    let worst = 0; for (let i = lower(lane.bursts.ends, begin), stop = lower(lane.bursts.ends, end); i < stop; i++) worst = Math.max(worst, lane.bursts.ends[i] - lane.bursts.begins[i]);
    return { name: lane.name, served, waited: Math.max(0, busy - served), requests: Math.max(0, lane.counted[Math.max(last, first)] - lane.counted[first]), worst };
  }).sort((p, q) => q.served - p.served);
  const head = row(["client", "share", "served", "waited", "requests", "worst"], "th");
  element("stats").replaceChildren(head, ...rows.map(one => row([one.name, (100 * one.served / (end - begin)).toFixed(1) + " %",
    duration(one.served), duration(one.waited), number(one.requests), duration(one.worst)])));
}
function hover(event) {
  const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, lane = lanes[Math.floor((event.clientY - box.top - TOP) / LANE)], t = timeAt(px);
  if (!lane || px < LABEL) return hideTip();
  const near = 2 * (to - from) / (width - LABEL); let i = lower(lane.slices.ends, t - near), text = lane.name + "\n" + timeText(t, (to - from) / 1000);
  if (i < lane.slices.begins.length && lane.slices.begins[i] <= t + near) text += "\nserved " + duration(lane.slices.ends[i] - lane.slices.begins[i]) + ", " + counted(lane.requests[i], "request") + ", last " + data.names[lane.sliceNames[i]];
  i = lower(lane.bursts.ends, t - near);
  if (i < lane.bursts.begins.length && lane.bursts.begins[i] <= t + near) text += "\nburst of " + duration(lane.bursts.ends[i] - lane.bursts.begins[i]) + ", of it waiting " + duration(lane.bursts.ends[i] - lane.bursts.begins[i] - covered(lane.slices, lane.bursts.begins[i], lane.bursts.ends[i]));
  if (lane.budgets[0].length) { i = Math.max(0, lower(lane.budgets[0], t) - 1); text += "\nbudget left " + duration(lane.budgets[1][i]) + ", deadline at " + timeText(lane.budgets[2][i], (to - from) / 1000); }
  showTip(event, text);
}
function zoom(factor, at) { const t = at ?? (from + to) / 2, length = Math.min(Math.max((to - from) * factor, LEAST), span), part = (t - from) / (to - from); show(t - part * length, t - part * length + length); }
const pan = part => { const move = Math.min(Math.max(part * (to - from), -from), span - to); from += move; to += move; ask(); };
let drag = null;
canvas.addEventListener("pointerdown", event => { drag = { px: event.clientX, from, to, moved: false }; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointermove", event => {
  if (!drag) return hover(event);
  const move = (event.clientX - drag.px) / (width - LABEL) * (drag.to - drag.from);
  if (Math.abs(event.clientX - drag.px) > 3) drag.moved = true;
  if (drag.moved) { const shift = Math.min(Math.max(-move, -drag.from), span - drag.to); from = drag.from + shift; to = drag.to + shift; hideTip(); ask(); }
});
canvas.addEventListener("pointerup", event => {
  if (drag && !drag.moved) { const px = event.clientX - canvas.getBoundingClientRect().left; if (px >= LABEL) { marks[event.shiftKey ? "b" : "a"] = timeAt(px); ask(); } }
  drag = null;
});
canvas.addEventListener("pointerleave", hideTip);
canvas.addEventListener("wheel", event => { if (event.altKey) return; event.preventDefault();
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / 800); else zoom(Math.exp(event.deltaY / 300), timeAt(Math.max(event.clientX - canvas.getBoundingClientRect().left, LABEL))); }, { passive: false });
addEventListener("keydown", event => {
  const act = { "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
    Home: () => show(0, to - from), End: () => show(span - (to - from), span), 0: () => show(0, span), a: () => { marks.a = (from + to) / 2; ask(); }, b: () => { marks.b = (from + to) / 2; ask(); },
    Escape: () => { marks = { a: null, b: null }; ask(); } }[event.key];
  if (act && !event.ctrlKey && !event.metaKey) { event.preventDefault(); act(); }
});
element("all").onclick = () => show(0, span);
element("clear").onclick = () => { marks = { a: null, b: null }; ask(); };
element("span").onclick = () => { if (marks.a !== null && marks.b !== null) show(Math.min(marks.a, marks.b), Math.max(marks.a, marks.b)); };
element("title").textContent = data.title; document.title = data.title;
element("facts").textContent = [data.policy && "policy " + data.policy, duration(data.span_ns), counted(lanes.length, "client"), data.level && "level " + data.level, data.lost && data.lost + " records are missing"].filter(Boolean).join(" · ");
element("waits").append(...data.worst.slice(0, 20).map(wait => { const button = document.createElement("button"); button.textContent = wait.text;
  button.onclick = () => { const room = Math.max(wait.end_ns - wait.begin_ns, 1e5); marks = { a: wait.begin_ns, b: wait.end_ns }; show(wait.begin_ns - room / 2, wait.end_ns + room / 2); }; return button; }));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); ask(); });
addEventListener("resize", ask); readColours(); draw(); document.documentElement.dataset.ready = "true";
