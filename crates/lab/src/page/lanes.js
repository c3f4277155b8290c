// A lane for each client: who was served when, from a trace. Marks stand only where a lane has any.

const LANE = { plain: 22, marked: 62, bar: 12 };
/** Stem, head, colour, and what a key shows of it; around 0: a deadline hangs from above, an arrival stands on the bar. */
const MARKS = {
  arrivals: ["requests arrive", "M0 0V-19", "M0 -23l3.5 7h-7z", "ink", "-6 -24 12 25"],
  deadlines: ["scheduling deadline", "M0 -23V-3", "M-3.5 -7L0 0L3.5 -7", "missed", "-6 -24 12 25"],
  ends: ["nothing left to serve", `M0 ${LANE.bar}v5`, `M-3 ${LANE.bar + 8}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`, "ink",
    `-6 ${LANE.bar - 1} 12 14`],
};

function lanes(figure, chart) {
  const holder = document.createElement("div");
  figure.append(holder);
  redraws.push(() => drawLanes(holder, chart));
}

const laneMarks = lane => Object.keys(MARKS).filter(kind => lane[kind].length);

function drawMark(kind, x, y) {
  const [, stem, head, colour] = MARKS[kind];
  const fill = kind === "arrivals" ? colour : "paper";
  return `<g transform="translate(${x.toFixed(1)} ${y})" stroke="var(--${colour})" stroke-width="1.5">` +
    `<path d="${stem}" fill="none"/><path d="${head}" fill="var(--${fill})"/></g>`;
}

function drawLanes(holder, chart) {
  const width = Math.max(holder.clientWidth, 320), left = 92, right = width - 14;
  const heights = chart.lanes.map(lane => laneMarks(lane).length ? LANE.marked : LANE.plain);
  const bottom = heights.reduce((sum, height) => sum + height, 6), height = bottom + 44;
  const x = axis(0, chart.length, left, right, false);
  const parts = [];
  const text = (at, down, anchor, words, kind) =>
    parts.push(`<text x="${at}" y="${down}" text-anchor="${anchor}" class="${kind}">${escapeText(words)}</text>`);
  for (const tick of x.ticks) {
    parts.push(`<line x1="${x.at(tick)}" x2="${x.at(tick)}" y1="4" y2="${bottom}" stroke="var(--line)"/>`);
    text(x.at(tick), bottom + 17, "middle", trim(tick), "soft");
  }
  text((left + right) / 2, bottom + 37, "middle", chart.x_label, "soft");
  let top = 6;
  chart.lanes.forEach((lane, i) => {
    const bar = top + (heights[i] === LANE.marked ? 28 : (LANE.plain - LANE.bar) / 2);
    text(left - 10, bar + LANE.bar - 2, "end", lane.name, "");
    parts.push(`<line x1="${left}" x2="${right}" y1="${bar + LANE.bar}" y2="${bar + LANE.bar}" stroke="var(--line)"/>`);
    // A slice shorter than a pixel is still to be seen.
    const path = lane.slices.map(([from, to]) => {
      const begin = x.at(from).toFixed(1), length = Math.max(x.at(to) - x.at(from), 0.7).toFixed(1);
      return `M${begin} ${bar}h${length}v${LANE.bar}H${begin}z`;
    });
    parts.push(`<path d="${path.join("")}" fill="var(--${lane.case})"/>`);
    const waits = lane.waiting.map(([from, to]) => `M${x.at(from).toFixed(1)} ${bar + LANE.bar - 2}H${x.at(to).toFixed(1)}`);
    parts.push(`<path d="${waits.join("")}" stroke="var(--missed)" stroke-width="3" fill="none"/>`);
    for (const kind of laneMarks(lane)) for (const at of lane[kind]) parts.push(drawMark(kind, x.at(at), bar));
    top += heights[i];
  });
  const kinds = Object.keys(MARKS).filter(kind => chart.lanes.some(lane => lane[kind].length));
  const keys = kinds.map(kind => {
    const [usual, , , , box] = MARKS[kind], words = chart.words[kind] || usual;
    const [, , wide, high] = box.split(" ");
    return `<span><svg width="${wide}" height="${high}" viewBox="${box}" aria-hidden="true">${drawMark(kind, 0, 0)}</svg> ` +
      `${escapeText(words)}</span>`;
  });
  holder.innerHTML = `<svg class="lanes" viewBox="0 0 ${width} ${height}" role="img" ` +
    `aria-label="${escapeText(chart.title)}; the table has the figures">${parts.join("")}</svg>` +
    `<div class="keys"><span>bars: ${escapeText(chart.words.slices || "served")}</span>` +
    (chart.lanes.some(lane => lane.waiting.length) ? `<span class="missed">lines: waiting for the processor</span>` : "") +
    `${keys.join("")}</div>`;
}
