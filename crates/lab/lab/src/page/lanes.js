/* SPDX-License-Identifier: MIT */
// A lane for each client: when it was served, from a trace. Marks are drawn only in lanes that have any.

const LANE = { plain: 22, marked: 62, bar: 12, left: 92, top: 6 };
/** Label, stem, head, colour, view box in the key; y is 0 at the top of the bar; deadlines and arrivals are above. */
const MARKS = {
  arrivals: ["requests arrive", "M0 0V-19", "M0 -23l3.5 7h-7z", "ink", "-6 -24 12 25"],
  deadlines: ["scheduling deadline", "M0 -23V-3", "M-3.5 -7L0 0L3.5 -7", "missed", "-6 -24 12 25"],
  ends: ["no requests left", `M0 ${LANE.bar}v5`, `M-3 ${LANE.bar + 8}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`, "ink",
    `-6 ${LANE.bar - 1} 12 14`],
};

function lanes(figure, chart) {
  const holder = document.createElement("div");
  const redraw = () => drawLanes(holder, chart, timeline);
  const timeline = new Timeline({ begin: 0, end: chart.length, min: chart.length / 1000, left: LANE.left, changed: redraw });
  figure.append(holder);
  addButtons(figure, "zoom", [["−", "zoom out", () => timeline.zoom(1 / 0.6)],
    ["+", "zoom in (ctrl and wheel: at the pointer)", () => timeline.zoom(0.6)],
    ["whole", "the whole time", () => timeline.showAll()]]);
  const place = event => {
    const box = holder.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let move = null, begun = 0;
  holder.onpointerdown = event => { [begun] = place(event); move = timeline.drag(); holder.setPointerCapture(event.pointerId); };
  holder.onpointerup = holder.onpointercancel = () => { move = null; };
  holder.onpointermove = event => {
    const [px, py] = place(event), lane = laneAt(chart, py);
    if (move) { hideTip(); move(px - begun); } else showTip(event, lane && px >= LANE.left && aboutLane(chart, lane, timeline, px));
  };
  holder.onpointerleave = hideTip;
  // The wheel alone scrolls the page.
  holder.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    timeline.wheel(event, place(event)[0]);
  }, { passive: false });
  redraws.push(redraw);
}

const laneHeights = chart => chart.lanes.map(lane => laneMarks(lane).length ? LANE.marked : LANE.plain);
function laneAt(chart, py) {
  let below = LANE.top;
  return py < below ? undefined : chart.lanes[laneHeights(chart).findIndex(height => py < (below += height))];
}
function aboutLane(chart, lane, timeline, px) {
  const [before, after] = [px - 2, px + 2].map(place => timeline.at(place)), lines = [lane.name];
  lines.push(`${trim(timeline.at(px))} ${chart.x_label}`);
  const found = lane.slices.find(([from, to]) => from <= after && to >= before);
  if (found) lines.push(`served: ${threeDigits(found[1] - found[0])}`);
  return lines.join("\n");
}

const laneMarks = lane => Object.keys(MARKS).filter(kind => lane[kind].length);

function drawMark(kind, x, y) {
  const [, stem, head, colour] = MARKS[kind];
  const fill = kind === "arrivals" ? colour : "paper";
  return `<g transform="translate(${x.toFixed(1)} ${y})" stroke="var(--${colour})" stroke-width="1.5">` +
    `<path d="${stem}" fill="none"/><path d="${head}" fill="var(--${fill})"/></g>`;
}

function drawLanes(holder, chart, timeline) {
  const heights = laneHeights(chart), bottom = heights.reduce((sum, height) => sum + height, LANE.top);
  const drawing = new Drawing(holder, bottom + 44), { left } = LANE, right = drawing.width - 14;
  timeline.right = right;
  const x = time => clamp(timeline.x(time), left, right), isShown = (from, to) => to >= timeline.from && from <= timeline.to;
  const ticks = timeline.ticks();
  for (const tick of ticks) drawing.line(x(tick), 4, x(tick), bottom);
  drawing.ticks(ticks, x, bottom, (left + right) / 2, chart.x_label);
  let top = LANE.top;
  chart.lanes.forEach((lane, i) => {
    const bar = top + (heights[i] === LANE.marked ? 28 : (LANE.plain - LANE.bar) / 2);
    drawing.text(left - 10, bar + LANE.bar - 2, "end", lane.name, "");
    drawing.line(left, bar + LANE.bar, right, bar + LANE.bar);
    // A slice shorter than a pixel remains visible.
    const path = lane.slices.filter(slice => isShown(...slice)).map(([from, to]) => {
      const begin = x(from).toFixed(1), length = Math.max(x(to) - x(from), 0.7).toFixed(1);
      return `M${begin} ${bar}h${length}v${LANE.bar}H${begin}z`;
    });
    drawing.add(`<path d="${path.join("")}" fill="var(--${lane.case})"/>`);
    for (const kind of laneMarks(lane)) for (const at of lane[kind]) if (isShown(at, at)) drawing.add(drawMark(kind, x(at), bar));
    top += heights[i];
  });
  const kinds = Object.keys(MARKS).filter(kind => chart.lanes.some(lane => lane[kind].length));
  const keys = kinds.map(kind => {
    const [words, , , , box] = MARKS[kind];
    const [, , wide, high] = box.split(" ");
    return `<span><svg width="${wide}" height="${high}" viewBox="${box}" aria-hidden="true">${drawMark(kind, 0, 0)}</svg> ` +
      `${escapeText(words)}</span>`;
  });
  drawing.show("lanes", chart.title + "; the table has the figures",
    `<div class="keys"><span>bars: served</span>${keys.join("")}</div>`);
}
