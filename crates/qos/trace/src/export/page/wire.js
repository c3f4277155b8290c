/* SPDX-License-Identifier: MIT */
// Messages on the wire, below the lane of their client: requests in the upper row, replies and events in the lower row.
// Lines lead from a request to the slice in which it was executed, and from there to its reply.

const WIRE = 22;
const wireOf = lane => lane.wire ? WIRE : 0;

function messagesOf({ is_whole, directions }) {
  const of = one => ({ times: floats(one.times), named: integers(one.names), sequences: floats(one.sequences), bytes: floats(one.bytes) });
  return { isWhole: is_whole, directions: directions.map(of) };
}

// The slice in which the request with this number was executed.
function executed(lane, sequence) {
  const i = lower(lane.counted, sequence) - 1;
  return lane.wire.isWhole && i >= 0 && i < lane.slices.begins.length ? i : null;
}

function drawWire(lane) {
  if (!lane.wire) return;
  const top = lane.top + LANE + chartOf(lane), [requests, replies] = lane.wire.directions;
  drawPaths(lane, requests, top + 4, i => lane.slices.begins[i]);
  drawPaths(lane, replies, top + 13, i => lane.slices.ends[i]);
  drawMoments(requests.times, top + 3, colours.wakeup);
  drawMoments(replies.times, top + 12, colours.served);
}
function drawPaths(lane, { times, sequences }, y, at) {
  const first = lower(times, timeline.from), last = upper(times, timeline.to);
  if (last - first > width / 4) return;
  for (let k = first; k < last; k++) {
    const i = executed(lane, sequences[k]);
    if (i !== null) drawPath([[x(times[k]), y], [x(at(i)), lane.top + 33]], colours.soft, []);
  }
}

// Describes the message next to a time, in the row of requests or in the row of replies.
function aboutMessage(lane, time, isReply, near) {
  const { times, named, sequences, bytes } = lane.wire.directions[isReply ? 1 : 0], k = lower(times, time - near);
  if (!(times[k] <= time + near)) return [];
  const i = executed(lane, sequences[k]), lines = [`${isReply ? "from" : "to"} the server: ${data.messages[named[k]]}, ${counted(bytes[k], "byte")}, request ${number(sequences[k])}`];
  if (i !== null && !isReply) lines.push(`its slice began ${duration(lane.slices.begins[i] - times[k])} later`);
  if (i !== null && isReply) lines.push(`the slice of its request ended ${duration(times[k] - lane.slices.ends[i])} earlier`);
  return lines;
}
