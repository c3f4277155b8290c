/* SPDX-License-Identifier: MIT */
// Overview: a lane for each connection, with its states and bytes over time.
const LANE = 44, BARS = 14;
let scroll = 0;

const lanesShown = () => Math.max(1, Math.floor((height - TOP) / LANE));
function drawLanes() {
  scroll = Math.min(Math.max(scroll, 0), Math.max(0, data.connections.length - lanesShown()));
  drawGrid(TOP, height);
  const first = Math.floor(scroll), last = Math.min(data.connections.length, first + lanesShown() + 1);
  for (let i = first; i < last; i++) drawLane(data.connections[i], TOP + (i - first) * LANE, i);
  const below = data.connections.length - first - lanesShown();
  if (below <= 0) return;
  pen.fillStyle = colours.soft; pen.textAlign = "right";
  pen.fillText(`${number(below)} more: use arrow keys or drag`, width - 10, height - 10);
}
function drawLane(one, top, i) {
  pen.fillStyle = colours.raised; pen.globalAlpha = i % 2 ? 0.5 : 0;
  pen.fillRect(0, top, width, LANE); pen.globalAlpha = 1;
  const left = Math.max(x(one.opened_ns), GUTTER), right = Math.min(x(one.ended_ns), width);
  if (right > left) {
    pen.fillStyle = colours.line; pen.fillRect(left, top + LANE / 2, right - left, 1);
    pen.save(); pen.beginPath(); pen.rect(left, top, right - left, LANE); pen.clip();
    one.tracks.forEach((track, direction) => {
      drawStrip(statesByPixel(track), direction ? top + LANE - 9 : top + 4, 5);
      drawDensity(track, direction ? top + LANE / 2 + 1 : top + LANE / 2, direction ? 1 : -1);
    });
    pen.restore();
  }
  pen.fillStyle = colours.ink; pen.textAlign = "left";
  pen.fillText(`${one.number}`, 8, top + LANE / 2 - 7);
  pen.fillStyle = colours.soft; pen.fillText(bytesText(total(one)), 8, top + LANE / 2 + 8);
}
function bytesText(bytes) {
  if (bytes < 1e4) return number(bytes) + " B";
  return bytes < 1e6 ? (bytes / 1e3).toFixed(0) + " kB" : (bytes / 1e6).toFixed(1) + " MB";
}
// New bytes per pixel column on a logarithmic scale, so that one large image does not hide everything else.
function drawDensity(track, base, sign) {
  const { ends, order } = track.packets;
  pen.fillStyle = colours.ink; pen.globalAlpha = 0.75;
  let i = lower(order.highest, timeline.from);
  const last = upper(order.lowest, timeline.to);
  while (i < last) {
    const px = Math.max(GUTTER, Math.floor(x(order.highest[i])));
    const next = Math.max(i + 1, Math.min(lower(order.highest, timeAt(px + 1)), last));
    const bytes = ends[next - 1] - (i > 0 ? ends[i - 1] : 0), tall = Math.min(BARS, Math.log2(bytes / 32 + 1) * 1.3);
    if (tall > 0) pen.fillRect(px, sign < 0 ? base - tall : base, 1, tall);
    i = next;
  }
  pen.globalAlpha = 1;
}
function laneAt(py) {
  const i = Math.floor(scroll) + Math.floor((py - TOP) / LANE);
  return py >= TOP && i < data.connections.length ? i : null;
}
