/* SPDX-License-Identifier: MIT */
// The accounting of a reservation, as Figure 5 of Manica et al. draws it: arrows up for arrivals, arrows down for
// deadlines, and the budget. The line is the recorded budget, which falls below 0 because a request is not interrupted.
// The dashed line is the original rule: the budget is recharged, and the deadline postponed, when it is used up.

const CHART = 120;
let isAccounting = false;
const chartOf = lane => isAccounting && lane.reservation ? CHART : 0;

// The budget spent before the budget record `k`, and the slice that spent it.
function account({ budgets: [times, left], slices: { begins, ends }, reservation: [budget] }, k) {
  const i = upper(ends, times[k]) - 1, spent = left[k - 1] - left[k];
  if (i < 0 || ends[i] <= times[k - 1]) return { begin: times[k], end: times[k], spent: 0 };
  // A budget that has grown was recharged, perhaps more than once.
  return { begin: Math.max(begins[i], times[k - 1]), end: ends[i], spent: spent + budget * Math.max(0, Math.ceil(-spent / budget)) };
}

function drawPath(points, colour, dashes) {
  pen.strokeStyle = colour; pen.setLineDash(dashes); pen.beginPath();
  for (const [px, py] of points) pen.lineTo(px, py);
  pen.stroke(); pen.setLineDash([]);
}
function drawArrow(time, from, to, colour, dashes = []) {
  const px = x(time), head = to < from ? 4 : -4;
  drawPath([[px, from], [px, to]], colour, dashes); drawPath([[px - 3, to + head], [px, to], [px + 3, to + head]], colour, []);
}

function drawAccounting(lane) {
  if (!chartOf(lane)) return;
  const { budgets: [times, left, deadlines], bursts, reservation: [budget, period] } = lane, top = lane.top + LANE;
  const first = Math.max(lower(times, timeline.from) - 1, 0), last = Math.min(lower(times, timeline.to) + 1, times.length);
  pen.textAlign = "left"; pen.fillStyle = colours.soft;
  if (last - first > width) return pen.fillText("zoom in to see the accounting", LABEL + 6, top + 20);
  pen.fillText(`${duration(budget)} in ${duration(period)}; dashed: the original rule, which recharges a budget when it is used up`, LABEL + 6, top + 8);
  const parts = [];
  for (let k = first + 1; k < last; k++) parts.push({ k, before: left[k - 1], ...account(lane, k) });
  const least = parts.reduce((low, { before, spent }) => Math.min(low, before - spent), -budget / 4);
  const high = top + 30, y = value => high + (budget - value) / (budget - least) * (CHART - 36), line = [[x(times[first]), y(left[first])]];
  pen.fillRect(LABEL, y(0), width, 0.5);
  drawArrow(deadlines[first], high - 14, y(0), colours.deadline);
  for (const { k, before, begin, end, spent } of parts) {
    line.push([x(begin), y(before)], [x(end), y(before - spent)], [x(times[k]), y(before - spent)], [x(times[k]), y(left[k])]);
    if (deadlines[k] !== deadlines[k - 1]) drawArrow(deadlines[k], high - 14, y(0), colours.deadline);
    if (before <= 0 || before >= spent) continue;
    const empty = begin + (end - begin) * before / spent;
    drawPath([[x(empty), y(0)], [x(empty), y(budget)], [x(end), y(budget + before - spent)]], colours.soft, [4, 3]);
    drawArrow(deadlines[k - 1] + period, high - 14, high, colours.soft, [4, 3]);
  }
  drawPath([...line, [width, line.at(-1)[1]]], colours.budget, []);
  for (let i = lower(bursts.begins, timeline.from); i < bursts.begins.length && bursts.begins[i] <= timeline.to; i++)
    drawArrow(bursts.begins[i], y(0), y(0) - 14, colours.served);
}
