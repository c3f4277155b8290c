/* SPDX-License-Identifier: MIT */
// One connection: a panel for each direction, with packets, acknowledged bytes, offered window and messages.
const STRIP = 9, TITLE = 18, BETWEEN = 10;
// Above these numbers, packets are joined per pixel column, and only the selected message and its reply are drawn.
const MAX_BARS = 6000, MAX_MARKS = 3000;
const DIRECTIONS = ["Requests", "Replies, events, errors"];

function panels() {
  const tall = (height - TOP - BETWEEN * (view.panels.length - 1)) / view.panels.length;
  return view.panels.map((direction, i) => {
    const top = TOP + i * (tall + BETWEEN) + TITLE + STRIP, bottom = TOP + i * (tall + BETWEEN) + tall;
    const [low, high] = bytesShown(direction), scale = (bottom - top - 4) / (high - low);
    const y = byte => bottom - 2 - (byte - low) * scale, byteAt = py => low + (bottom - 2 - py) / scale;
    return { direction, top, bottom, low, high, y, byteAt, track: chosen().tracks[direction], taken: new Map() };
  });
}
const panelAt = py => panels().find(panel => py >= panel.top - TITLE - STRIP && py <= panel.bottom);

function drawPanels() {
  const all = panels();
  for (const panel of all) {
    panel.parts = statesByPixel(panel.track);
    pen.save(); pen.beginPath(); pen.rect(GUTTER, panel.top, width - GUTTER, panel.bottom - panel.top); pen.clip();
    drawGrid(panel.top, panel.bottom);
    drawBytes(panel);
    drawTint(panel.parts, panel.top, panel.bottom - panel.top);
    drawStairs(panel, 2, colours.window, [3, 3]); drawStairs(panel, 1, colours.acknowledged, []);
    drawGaps(panel); drawPackets(panel); drawMessages(panel);
    pen.restore();
    drawFrame(panel);
  }
  drawAnswer(all);
}

function drawFrame(panel) {
  const { top, bottom, direction, track, low, high, y } = panel;
  drawStrip(panel.parts, top - STRIP, STRIP - 1);
  pen.fillStyle = colours.line; pen.fillRect(GUTTER - 1, top - STRIP, 1, bottom - top + STRIP); pen.fillRect(GUTTER, bottom, width, 1);
  pen.textAlign = "left"; pen.fillStyle = colours.ink; pen.font = "600 " + FONT;
  pen.fillText(DIRECTIONS[direction], GUTTER + 4, top - STRIP - TITLE / 2); pen.font = FONT;
  const [first, last] = messagesIn(track, timeline.from, timeline.to), [one, other] = packetsIn(track, timeline.from, timeline.to);
  const names = last - first > MAX_MARKS ? ", zoom in to see names" : "";
  const fixed = view.bytes[direction] ? " · byte range fixed, press f to fit" : "";
  const said = `${counted(last - first, "message")} in ${counted(other - one, "packet")}` + names + fixed;
  pen.fillStyle = colours.soft; pen.fillText(said, GUTTER + 20 + pen.measureText(DIRECTIONS[direction]).width * 1.08, top - STRIP - TITLE / 2);
  pen.textAlign = "right";
  const step = Math.max(1, stepFor(high - low, bottom - top, 34));
  for (let byte = Math.ceil(Math.max(low, 0) / step) * step; byte <= high; byte += step)
    if (y(byte) > top + 5 && y(byte) < bottom - 5) pen.fillText(number(byte), GUTTER - 8, y(byte));
  pen.fillText("bytes", GUTTER - 8, top - STRIP - TITLE / 2);
}
function drawBytes({ low, high, top, bottom, y }) {
  const step = Math.max(1, stepFor(high - low, bottom - top, 34));
  pen.fillStyle = colours.grid;
  for (let byte = Math.ceil(Math.max(low, 0) / step) * step; byte <= high; byte += step) pen.fillRect(GUTTER, Math.round(y(byte)), width, 1);
}

// Draws acknowledged bytes or the offered window as a staircase. Each pixel shows the last step.
function drawStairs({ track, y, top, bottom }, column, colour, dash) {
  const times = track.steps[0], values = track.steps[column];
  const first = stepAt(track, timeline.from), last = stepAt(track, timeline.to);
  if (last < 0) return;
  const clamp = py => Math.min(Math.max(py, top - 20), bottom + 20);
  pen.strokeStyle = colour; pen.setLineDash(dash); pen.beginPath();
  let level = first >= 0 ? clamp(y(values[first])) : null;
  if (level !== null) pen.moveTo(GUTTER, level);
  const step = (px, i) => {
    const next = clamp(y(values[i]));
    if (level === null) pen.moveTo(px, next); else { pen.lineTo(px, level); pen.lineTo(px, next); }
    level = next;
  };
  if (last - first < 2 * (width - GUTTER)) for (let i = first + 1; i <= last; i++) step(x(times[i]), i);
  else for (let px = GUTTER, before = first; px < width; px++) {
    const at = stepAt(track, timeAt(px + 1));
    if (at > before) { step(px, at); before = at; }
  }
  if (level !== null) pen.lineTo(width, level);
  pen.stroke(); pen.setLineDash([]);
}

function drawGaps({ track, y, top }) {
  const [times, offsets, lengths] = track.gaps;
  pen.fillStyle = colours.resent;
  for (let i = 0; i < Math.min(times.length, MAX_BARS); i++) {
    if (times[i] < timeline.from || times[i] > timeline.to) continue;
    const px = x(times[i]), high = y(offsets[i] + lengths[i]);
    pen.globalAlpha = 0.25; pen.fillRect(px - 4, high, 8, Math.max(2, y(offsets[i]) - high));
    pen.globalAlpha = 1; pen.textAlign = "center"; pen.fillText("not captured", px, Math.max(high - 8, top + 8));
  }
}

function drawPackets({ track, y, taken }) {
  const { at, offset, length, flags, ends, resent, resentAt } = track.packets;
  const [first, last] = packetsIn(track, timeline.from, timeline.to);
  if (last - first <= MAX_BARS) {
    const cap = last - first < 400 ? 3 : last - first < 1500 ? 1.5 : 0;
    for (let i = first; i < last; i++) {
      const isResent = flags[i] & 1;
      pen.fillStyle = isResent ? colours.resent : colours.packet;
      const px = x(at[i]), from = y(offset[i]), to = y(offset[i] + length[i]);
      pen.fillRect(px - (isResent ? 1 : 0.5), to, isResent ? 2 : 1, Math.max(from - to, 1));
      if (cap) { pen.fillRect(px - cap, to, 2 * cap, 1); pen.fillRect(px - cap, from - 1, 2 * cap, 1); }
      if (isResent && reserve(taken, px - 4, from + 9, 8)) { pen.textAlign = "center"; pen.fillText("R", px, from + 9); }
    }
    return;
  }
  // Draw new bytes as one rising bar per pixel, then retransmitted bytes below them.
  for (let px = GUTTER, i = first; px < width && i < last; px++) {
    const from = timeAt(px), to = timeAt(px + 1), next = Math.min(lower(track.packets.order.highest, to), last);
    if (next <= i) continue;
    const low = y(i > 0 ? ends[i - 1] : offset[0]), high = y(ends[next - 1]);
    pen.fillStyle = colours[stateOf(track, from, to)]; pen.fillRect(px, high, 1, Math.max(low - high, 1));
    i = next;
  }
  pen.fillStyle = colours.resent;
  let before = -9;
  for (let k = lower(resentAt, timeline.from); k < resent.length && resentAt[k] <= timeline.to; k++) {
    const px = x(resentAt[k]);
    if (px - before < 1) { k = Math.max(k, lower(resentAt, timeAt(before + 1)) - 1); continue; }
    pen.fillRect(px - 0.5, y(offset[resent[k]] + length[resent[k]]) - 2, 1.5, 5); before = px;
  }
}

// Draws messages next to their packets, with an arrow at their end, and with a name where there is space.
function drawMessages({ track, y, top, bottom, low, high, direction, taken }) {
  const { last: times, offset, length, name } = track.messages;
  let [first, last] = messagesIn(track, timeline.from, timeline.to);
  // With many messages at the same time, draw only those in the visible byte range.
  first = Math.max(first, lower(offset, low) - 1); last = Math.min(last, lower(offset, high));
  if (last - first > MAX_MARKS) return drawPicked(track, y, direction);
  const names = [];
  for (let i = Math.max(first, 0); i < last; i++) {
    const px = x(times[i]), from = y(offset[i]), to = y(offset[i] + length[i]);
    const colour = colours[stateUntil(track, times[i])];
    pen.fillStyle = colour; pen.strokeStyle = colour;
    drawMark(px + 7, from, to);
    const shown = Math.min(from, bottom) - Math.max(to, top);
    const middle = Math.min(Math.max((from + to) / 2, Math.max(to, top) + 6), Math.min(from, bottom) - 1);
    if (shown >= 3) names.push([px + 13, middle, i, shown]);
  }
  drawPicked(track, y, direction);
  // Tall messages first. Names never overlap.
  names.sort((one, other) => other[3] - one[3]);
  pen.textAlign = "left";
  for (const [px, py, i] of names) {
    const text = nameOf(name[i]), wide = pen.measureText(text).width;
    // At the right border, a name is placed to the left of its packet.
    const left = px + wide > width ? px - 24 - wide : px;
    if (py < top + 6 || !reserve(taken, left, py, wide)) continue;
    // An outline separates names from the lines behind them.
    pen.strokeStyle = colours.paper; pen.lineJoin = "round";
    pen.lineWidth = 3; pen.strokeText(text, left, py); pen.lineWidth = 1;
    pen.fillStyle = kindOf(name[i]) === "Error" ? colours.resent : colours.ink; pen.fillText(text, left, py);
  }
}
function drawMark(px, from, to) {
  pen.fillRect(px - 0.5, to, 1.2, Math.max(from - to, 1));
  if (from - to < 5) return;
  pen.beginPath(); pen.moveTo(px - 2.6, to + 5); pen.lineTo(px, to); pen.lineTo(px + 2.6, to + 5); pen.fill();
  pen.fillRect(px - 2.5, from - 0.5, 5, 0.8);
}
// Reserves space for a name, in rows of 13 pixels. Returns false if it would overlap another one.
function reserve(taken, left, py, wide) {
  const rows = [Math.floor(py / 13), Math.floor((py + 11) / 13)];
  const isIn = ([from, to]) => left < to + 6 && left + wide + 6 > from;
  if (rows.some(row => (taken.get(row) || []).some(isIn))) return false;
  for (const row of rows) taken.set(row, [...(taken.get(row) || []), [left, left + wide]]);
  return true;
}
function drawPicked(track, y, direction) {
  const pairs = view.picked ? [view.picked, answer(view.picked)] : [];
  for (const one of pairs) {
    if (!one || one.direction !== direction) continue;
    const { last, offset, length } = track.messages, px = x(last[one.index]);
    pen.fillStyle = colours.picked; pen.globalAlpha = 0.55;
    const to = y(offset[one.index] + length[one.index]), tall = Math.max(y(offset[one.index]) - to, 3);
    pen.fillRect(px - 1, to - 2, 18, tall + 4); pen.globalAlpha = 1;
    pen.fillStyle = colours.ink; pen.fillRect(px + 5.5, to, 3, tall);
  }
}
// Draws a line between a request and its reply.
function drawAnswer(all) {
  const other = view.picked && answer(view.picked);
  if (!other || all.length < 2) return;
  const [one, two] = [view.picked, other].map(({ direction, index }) => {
    const panel = all.find(panel => panel.direction === direction), { last, offset, length } = panel.track.messages;
    const middle = panel.y(offset[index] + length[index] / 2);
    return [x(last[index]) + 7, Math.min(Math.max(middle, panel.top), panel.bottom)];
  });
  pen.save(); pen.beginPath(); pen.rect(GUTTER, TOP, width, height); pen.clip();
  pen.strokeStyle = colours.ink; pen.globalAlpha = 0.6; pen.setLineDash([5, 4]);
  pen.beginPath(); pen.moveTo(...one); pen.lineTo(...two); pen.stroke(); pen.restore();
}

// The message or packet under the pointer, if any.
function hit(px, py) {
  const panel = panelAt(py);
  if (!panel || py < panel.top || px < GUTTER) return null;
  const { track, direction, byteAt } = panel, { last: times, offset, length } = track.messages;
  const near = timeAt(px + 4) - timeAt(px), from = timeAt(px - 22), to = timeAt(px + 3);
  const first = Math.max(lower(offset, byteAt(py + 4)) - 1, 0);
  let best = null, nearest = Infinity;
  for (let i = first; i < Math.min(lower(offset, byteAt(py - 4)), first + MAX_MARKS); i++) {
    if (offset[i] + length[i] < byteAt(py + 4) || times[i] < from || times[i] > to) continue;
    const middle = panel.y(offset[i] + length[i] / 2);
    const away = Math.abs(x(times[i]) + 7 - px) + Math.abs(middle - py) / 50;
    if (away < nearest) { best = { direction, index: i }; nearest = away; }
  }
  if (best) return { panel, message: best };
  const [one, other] = packetsIn(track, timeAt(px) - near, timeAt(px) + near), packets = track.packets;
  const low = byteAt(py + 4), high = byteAt(py - 4);
  for (let i = one; i < Math.min(other, one + MAX_BARS); i++)
    if (low <= packets.offset[i] + packets.length[i] && high >= packets.offset[i]) return { panel, packet: i };
  return { panel };
}
