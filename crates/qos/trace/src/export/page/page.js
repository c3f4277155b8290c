/* SPDX-License-Identifier: MIT */
// The page of a trace: a lane for each client, and statistics of the visible range.

const lanes = data.lanes.map(lane => {
  const requests = integers(lane.slice_requests);
  return { name: lane.name, gone: lane.gone, reservation: lane.reservation, requests, counted: sums(requests), sliceNames: integers(lane.slice_names),
    slices: intervals(lane.slices.map(floats)), bursts: intervals(lane.bursts.map(floats)),
    budgets: lane.budgets.map(floats), inputs: floats(lane.inputs), exposes: floats(lane.exposes),
    grabs: intervals(lane.grabs.map(floats)), cuts: floats(lane.cuts), rests: intervals(lane.rests.map(floats)),
    wire: lane.wire && messagesOf(lane.wire) };
});
// Free the text, which is no longer needed and uses much of the page's memory.
data.lanes = null;
element("data").remove();
// The lanes whose names contain the search text, and those of them that are drawn.
let found = lanes, shown = lanes;
const tallOf = lane => LANE + chartOf(lane) + wireOf(lane);

// Browsers leave a canvas blank if it is taller than this many screen pixels.
const TALLEST = 32000;
// As many lanes as fit on a canvas: those of the clients that were served or had requests for the longest time.
function fitting(all) {
  const usedBy = ({ slices, bursts }) => Math.max(slices.sums.at(-1), bursts.sums.at(-1));
  let room = TALLEST / (devicePixelRatio || 1) - CLIENTS - 4;
  if (all.reduce((sum, lane) => sum + tallOf(lane), 0) <= room) return all;
  const used = all.map(lane => [usedBy(lane), lane]).sort(([one], [other]) => other - one);
  const kept = new Set(used.map(([, lane]) => lane).filter(lane => (room -= tallOf(lane)) >= 0));
  return all.filter(lane => kept.has(lane));
}

function draw() {
  let tall = CLIENTS;
  shown = fitting(found);
  for (const lane of shown) { lane.top = tall; tall += tallOf(lane); }
  tall += 4;
  canvas.style.height = tall + "px";
  prepare(Math.max(stage.clientWidth, LABEL + 50), tall);
  shown.forEach(drawBand);
  drawGrid(TOP, height);
  processors.forEach(drawProcessor);
  shown.forEach(drawLane);
  pen.fillStyle = colours.paper; pen.fillRect(0, 0, LABEL - 1, height);
  processors.forEach(drawProcessorName);
  shown.forEach(drawName);
  drawTimes(); drawMarkers();
  describe();
}
function drawBand(lane, i) {
  if (i % 2 === 0) return;
  pen.fillStyle = colours.raised; pen.globalAlpha = 0.6;
  pen.fillRect(LABEL, lane.top, width, tallOf(lane));
  pen.globalAlpha = 1;
}
function drawLane(lane) {
  const { top } = lane;
  drawIntervals(lane.grabs, top + 2, 4, colours.grab);
  drawIntervals(lane.bursts, top + 8, 9, colours.burst);
  drawIntervals(lane.slices, top + 17, 16, colours.served);
  drawIntervals(lane.rests, top + 17, 16, colours.cut);
  drawMoments(lane.cuts, top + 12, colours.cut);
  drawBudget(lane, top); drawAccounting(lane); drawWire(lane);
  drawMoments(lane.exposes, top + 36, colours.soft); drawMoments(lane.inputs, top + 3, colours.input);
}
function drawName(lane) {
  let name = lane.name;
  while (pen.measureText(name).width > LABEL - 12) name = name.slice(0, -2) + "…";
  pen.textAlign = "left"; pen.fillStyle = lane.gone ? colours.soft : colours.ink;
  pen.fillText(name, 8, lane.top + LANE / 2);
}

// Draws whole pixel columns if intervals are denser than pixels, so that the cost depends only on the width.
function drawIntervals(some, top, tall, fill) {
  const { begins, ends } = some, first = lower(ends, timeline.from), last = lower(begins, timeline.to);
  pen.fillStyle = fill;
  if (last - first < 2 * (width - LABEL)) {
    for (let i = first; i < last; i++) {
      const left = Math.max(x(begins[i]), LABEL), right = Math.min(x(ends[i]), width);
      pen.fillRect(left, top, Math.max(right - left, 0.7), tall);
    }
    return;
  }
  for (let px = LABEL; px < width; px++) {
    const part = covered(some, timeAt(px), timeAt(px + 1)) / (timeAt(px + 1) - timeAt(px));
    if (part <= 0) continue;
    pen.globalAlpha = clamp(part, 0.25, 1); pen.fillRect(px, top, 1, tall);
  }
  pen.globalAlpha = 1;
}
function drawMoments(times, top, fill) {
  pen.fillStyle = fill;
  let before = -9;
  for (let i = lower(times, timeline.from); i < times.length && times[i] <= timeline.to; i++) {
    const px = x(times[i]);
    if (px - before >= 1) { pen.fillRect(px, top, 1, 5); before = px; }
    else i = Math.max(i, lower(times, timeAt(before + 1)) - 1);
  }
}
function drawBudget({ budgets: [times, left, deadlines] }, top) {
  if (!times.length) return;
  const first = Math.max(lower(times, timeline.from) - 1, 0), last = Math.min(lower(times, timeline.to) + 1, times.length);
  const step = Math.max(1, Math.floor((last - first) / (4 * width)));
  let full = 1;
  for (let i = first; i < last; i += step) full = Math.max(full, left[i]);
  pen.strokeStyle = colours.budget; pen.beginPath();
  for (let i = first; i < last; i += step)
    pen.lineTo(Math.max(x(times[i]), LABEL), top + LANE - 6 - 12 * Math.max(0, left[i]) / full);
  pen.stroke();
  pen.fillStyle = colours.deadline;
  let before = -9;
  for (let i = first; i < last; i += step) {
    const px = x(deadlines[i]);
    if (px > LABEL && px < width && px - before >= 2) { pen.fillRect(px, top + 4, 1, LANE - 10); before = px; }
  }
}

function describe() {
  const { isMarked, span: [from, to], a, b } = timeline;
  const marker = a === null ? "" : ", A at " + timeText(a, (to - from) / 1000);
  const some = shown.length < found.length ? `; ${number(shown.length)} of ${counted(found.length, "client")}: find the others by name` : "";
  element("what").textContent = (isMarked ? "A to B: " + duration(b - a) : "Visible: " + duration(to - from) + marker) + some;
  const head = row(["client", "share", "served", "waited", "requests", "longest"], "th");
  const all = shown.map(lane => figures(lane, from, to)).sort((one, other) => other.served - one.served);
  element("stats").replaceChildren(head, ...all.map(one => row([one.name, (100 * one.served / (to - from)).toFixed(1) + " %",
    duration(one.served), duration(one.waited), number(one.requests), duration(one.worst)])));
}
function figures({ name, slices, bursts, counted }, from, to) {
  const served = covered(slices, from, to), waited = Math.max(0, covered(bursts, from, to) - served);
  const first = lower(slices.ends, from), last = lower(slices.begins, to);
  // Find the longest burst that ends in this range. Check all bursts, because sampling could miss the longest.
  let worst = 0;
  for (let i = lower(bursts.ends, from), stop = lower(bursts.ends, to); i < stop; i++)
    worst = Math.max(worst, bursts.ends[i] - bursts.begins[i]);
  return { name, served, waited, requests: counted[Math.max(last, first)] - counted[first], worst };
}

// The interval that contains a time, or is near it.
function under({ begins, ends }, time, near) {
  const i = lower(ends, time - near);
  return i < begins.length && begins[i] <= time + near ? i : null;
}
function about(lane, time, py) {
  const { slices, bursts, budgets, rests } = lane, step = timeline.length / 1000, near = timeAt(2) - timeAt(0);
  const lines = [lane.name, timeText(time, step)], inWire = py - lane.top - LANE - chartOf(lane);
  if (lane.wire && inWire >= 0) return [...lines, ...aboutMessage(lane, time, inWire >= WIRE / 2, near)].join("\n");
  const [slice, burst, grab, rest] = [slices, bursts, lane.grabs, rests].map(some => under(some, time, near));
  if (grab !== null) lines.push(`holds the server grab for ${duration(lane.grabs.ends[grab] - lane.grabs.begins[grab])}`);
  if (slice !== null) {
    const length = duration(slices.ends[slice] - slices.begins[slice]), last = data.names[lane.sliceNames[slice]];
    lines.push(`served ${length}, ${counted(lane.requests[slice], "request")}, last ${last}`);
  }
  if (lane.cuts[lower(lane.cuts, time - near)] <= time + near) lines.push("its request is cut here to serve others");
  if (rest !== null) lines.push(`the rest of its cut request, for another client: ${duration(rests.ends[rest] - rests.begins[rest])}`);
  if (burst !== null) {
    const from = bursts.begins[burst], to = bursts.ends[burst], waiting = to - from - covered(slices, from, to);
    lines.push(`burst of ${duration(to - from)}, waited ${duration(waiting)}`);
  }
  if (budgets[0].length) {
    const i = Math.max(0, lower(budgets[0], time) - 1);
    lines.push(`budget left ${duration(budgets[1][i])}, deadline at ${timeText(budgets[2][i], step)}`);
  }
  return lines.join("\n");
}

listen({
  click(event, px) { if (px >= LABEL) timeline.mark({ [event.shiftKey ? "b" : "a"]: timeAt(px) }); },
  hover(event, px, py) {
    const one = py >= TOP && processors[Math.floor((py - TOP) / PROCESSOR)], lane = shown.findLast(({ top }) => py >= top);
    const text = px >= LABEL && (one ? aboutProcessor(one, timeAt(px)) : lane && about(lane, timeAt(px), py));
    showTip(event, text);
  },
});
bind(timeline.keys(pointed), { all: () => timeline.showAll(), span: () => timeline.showMarked(), clear: () => timeline.clear(),
  accounting: () => { isAccounting = !isAccounting; ask(); } });

element("find").oninput = event => {
  const wanted = event.target.value.toLowerCase();
  found = lanes.filter(lane => lane.name.toLowerCase().includes(wanted));
  ask();
};

function withText(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}
function showWait({ begin_ns: begin, end_ns: end }) {
  const room = Math.max(end - begin, 1e5) / 2;
  timeline.mark({ a: begin, b: end });
  timeline.show(begin - room, end + room);
}
function waitButton(wait) {
  const button = withText("button", wait.text);
  button.onclick = () => showWait(wait);
  return button;
}
// Paragraphs are separated by empty lines, and commands are indented.
function explain(block) {
  const [sentence, command] = block.split("\n    ");
  return [withText("p", sentence.replaceAll("\n", " ")), ...command ? [withText("code", command)] : []];
}
element("title").textContent = document.title = data.title;
element("facts").textContent = [data.policy && "policy " + data.policy, duration(data.span_ns),
  counted(lanes.length, "client"), data.level && "level " + data.level,
  data.lost && counted(data.lost, "record") + " missing"].filter(Boolean).join(" · ");
element("waits").append(...data.worst.slice(0, 20).map(waitButton));
element("accounting").hidden = !lanes.some(lane => lane.reservation && lane.budgets[0].length);
element("processors").hidden = !processors.length;
element("wire").hidden = !lanes.some(lane => lane.wire);
if (data.explanation) {
  element("explanation").append(...data.explanation.text.trim().split("\n\n").flatMap(explain));
  element("explanation").hidden = false;
}
useColours(["served", "burst", "budget", "deadline", "input", "grab", "cut", "interrupt", "wakeup"]);
draw();
if (data.explanation && data.explanation.end_ns > data.explanation.begin_ns) showWait(data.explanation);
document.documentElement.dataset.ready = "true";
