/* SPDX-License-Identifier: MIT */
// The view: one connection or all, the byte range of each panel, and the selected message.
const GUTTER = 92;
const timeline = new Timeline({ begin: facts.from_ns, end: facts.to_ns, min: 1000, left: GUTTER, changed: ask });
const view = { connection: null, panels: [0, 1], bytes: [null, null], hasWindow: false, picked: null };
let data = { connections: [], texts: [] };
const chosen = () => view.connection === null ? null : data.connections[view.connection];

function choose(index) {
  view.connection = index; view.bytes = [null, null]; view.picked = null;
  ask(); describe();
}
function choosePanels(panels) {
  if (view.connection === null) choose(busiest());
  view.panels = panels; ask(); describe();
}
function busiest() {
  let best = 0;
  data.connections.forEach((one, i) => { if (total(one) > total(data.connections[best])) best = i; });
  return best;
}
const total = one => one.bytes[0] + one.bytes[1];

// Messages of a direction in a time range, as a range of indices.
function messagesIn(track, from, to) {
  return [lower(track.messages.order.highest, from), upper(track.messages.order.lowest, to)];
}
const packetsIn = (track, from, to) => [lower(track.packets.order.highest, from), upper(track.packets.order.lowest, to)];
function stepAt(track, time) { return upper(track.stepOrder.highest, time) - 1; }

// The byte range of a panel: the chosen one, or all new bytes of the visible time with a margin.
function bytesShown(direction) {
  if (view.bytes[direction]) return view.bytes[direction];
  const track = chosen().tracks[direction], { ends, offset } = track.packets;
  const [first, last] = packetsIn(track, timeline.from, timeline.to);
  const [firstMessage, lastMessage] = messagesIn(track, timeline.from, timeline.to);
  let low = first > 0 ? ends[first - 1] : offset.length ? offset[0] : 0, high = last > 0 ? ends[last - 1] : low;
  if (lastMessage > firstMessage) {
    const { offset: offsets, length } = track.messages;
    low = Math.min(low, offsets[firstMessage]); high = Math.max(high, offsets[lastMessage - 1] + length[lastMessage - 1]);
  }
  if (view.hasWindow) {
    const [, acknowledged, edge] = track.steps;
    const firstStep = Math.max(0, stepAt(track, timeline.from)), lastStep = stepAt(track, timeline.to);
    if (lastStep >= 0) { low = Math.min(low, acknowledged[firstStep]); high = Math.max(high, edge[lastStep]); }
  }
  const air = Math.max((high - low) * 0.06, 8);
  return [low - air, high + air];
}
function zoomBytes(direction, factor, byte) {
  const [low, high] = bytesShown(direction), at = byte ?? (low + high) / 2;
  const length = Math.min(Math.max((high - low) * factor, 8), 2 ** 52), part = (at - low) / (high - low);
  view.bytes[direction] = [at - part * length, at - part * length + length];
  ask();
}
function panBytes(direction, part) {
  const [low, high] = bytesShown(direction), move = part * (high - low);
  view.bytes[direction] = [low + move, high + move];
  ask();
}

// The state of a direction before `time`.
function stateUntil(track, time) {
  for (const name of ["receiver", "network", "waiting"]) {
    const { begins, ends } = track.states[name], next = lower(ends, time);
    if (next < ends.length && begins[next] < time) return name;
  }
  return "idle";
}
// The state with the largest part of the range, if that is at least half; otherwise idle.
function stateOf(track, from, to) {
  let best = "idle", max = (to - from) / 2;
  for (const name of STATES.slice(1)) {
    const part = covered(track.states[name], from, to);
    if (part >= max) { best = name; max = part; }
  }
  return best;
}

// The counterpart of a message: for a request, its first reply or error; for a reply or error, its request.
function answer({ direction, index }) {
  const { tracks } = chosen(), own = tracks[direction].messages, other = tracks[1 - direction].messages;
  const kind = kindOf(own.name[index]), sequence = own.sequence[index];
  if (kind === "Event") return null;
  const wanted = { Setup: ["SetupReply"], SetupReply: ["Setup"], Request: ["Reply", "Error"] }[kind] || ["Request"];
  // Sequence numbers of requests never decrease; replies, errors and events with the same number are adjacent.
  for (let i = lower(other.sequence, sequence); i < other.sequence.length && other.sequence[i] <= sequence; i++)
    if (wanted.includes(kindOf(other.name[i]))) return { direction: 1 - direction, index: i };
  return null;
}
function pick(picked, isSought) {
  view.picked = picked;
  if (picked && isSought) {
    const { last, offset, length } = chosen().tracks[picked.direction].messages, time = last[picked.index];
    if (time < timeline.from || time > timeline.to) timeline.moveTo(time - timeline.length / 2);
    const [low, high] = bytesShown(picked.direction), byte = offset[picked.index] + length[picked.index] / 2;
    const isOutside = byte < low || byte > high;
    if (view.bytes[picked.direction] && isOutside) panBytes(picked.direction, (byte - (low + high) / 2) / (high - low));
  }
  ask(); describe();
}
// Zooms in so that the message, its neighbours and its counterpart are readable.
function zoomTo(picked) {
  const pair = [picked, answer(picked)].filter(Boolean), times = [];
  for (const { direction, index } of pair) {
    const { last, lag, offset, length } = chosen().tracks[direction].messages;
    times.push(last[index] - lag[index], last[index]);
    const middle = offset[index] + length[index] / 2, room = Math.max(length[index] * 3, 240);
    view.bytes[direction] = [middle - room, middle + room];
  }
  const from = Math.min(...times), to = Math.max(...times), air = Math.max((to - from) * 0.4, 20000);
  timeline.show(from - air, to + air);
}
