/* SPDX-License-Identifier: MIT */
// Decodes rows from bytes. Each column holds zigzag differences to the previous row, as varints.
const facts = JSON.parse(element("data-facts").textContent);

async function inflated() {
  const holder = element("data-bytes"), text = atob(holder.textContent);
  holder.remove();
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function reader(bytes, position) {
  const next = () => {
    let byte = bytes[position++];
    if (byte < 128) return byte;
    let value = byte & 127, scale = 128;
    do { byte = bytes[position++]; value += (byte & 127) * scale; scale *= 128; } while (byte >= 128);
    return value;
  };
  const column = (out, count) => {
    let last = 0;
    for (let i = 0; i < count; i++) {
      const folded = next();
      last += folded % 2 ? -(folded + 1) / 2 : folded / 2;
      out[i] = last;
    }
    return out;
  };
  return (count, ...kinds) => kinds.map(kind => column(new kind(count), count));
}

const BLOCK = 16384;
// Running totals of counts and bytes by name at the start of each block. A range then costs at most two blocks.
function histogram({ name, length }) {
  const running = new Float64Array(2 * facts.names.length * KINDS.length), blocks = [running.slice()];
  if (name.length <= 2 * BLOCK) return null;
  for (let i = 0; i < name.length; i++) {
    running[2 * name[i]]++;
    running[2 * name[i] + 1] += length[i];
    if ((i + 1) % BLOCK === 0) blocks.push(running.slice());
  }
  return blocks;
}
function addCounts(messages, first, last, sums) {
  const { name, length, blocks } = messages;
  if (last - first > 2 * BLOCK) {
    const from = Math.ceil(first / BLOCK), to = Math.floor(last / BLOCK);
    for (let k = 0; k < sums.length; k++) sums[k] += blocks[to][k] - blocks[from][k];
    addCounts(messages, first, from * BLOCK, sums);
    addCounts(messages, to * BLOCK, last, sums);
    return;
  }
  for (let i = first; i < last; i++) {
    sums[2 * name[i]]++;
    sums[2 * name[i] + 1] += length[i];
  }
}

const KINDS = ["Setup", "SetupReply", "Request", "Reply", "Event", "Error"];
const STATES = ["idle", "network", "receiver", "waiting"];
const STATE_NAMES = { idle: "idle", network: "blocked by the network", receiver: "blocked by the receiver",
  waiting: "waiting for a reply" };

function unpackPackets(at, offset, length, flags) {
  const ends = offset.slice(), resent = [];
  let max = 0;
  for (let i = 0; i < ends.length; i++) {
    max = Math.max(max, offset[i] + length[i]); ends[i] = max;
    if (flags[i] & 1) resent.push(i);
  }
  return { at, offset, length, flags, ends, resent, resentAt: Float64Array.from(resent, i => at[i]), order: sorted(at) };
}

function unpackMessages([last, lag, skipped, length, sequence, packed, text]) {
  const offset = skipped;
  let next = 0;
  for (let i = 0; i < offset.length; i++) { offset[i] += next; next = offset[i] + length[i]; }
  // In the page, a name's index combines kind and name.
  const name = packed.map(value => (value & 7) * facts.names.length + (value >> 3));
  const messages = { last, lag, offset, length, sequence, name, text, order: sorted(last) };
  messages.blocks = histogram(messages);
  return messages;
}
const kindOf = name => KINDS[Math.floor(name / facts.names.length)];
const nameOf = name => facts.names[name % facts.names.length];

function unpackTrack(rows, [packets, steps, messages, gaps, ...states]) {
  const F = Float64Array, U = Uint32Array;
  const track = {
    packets: unpackPackets(...rows(packets, F, F, U, Uint8Array)),
    steps: rows(steps, F, F, F),
    messages: unpackMessages(rows(messages, F, Float32Array, F, F, F, U, U)),
    gaps: rows(gaps, F, F, F),
    states: {},
  };
  track.stepOrder = sorted(track.steps[0]);
  STATES.slice(1).forEach((name, i) => { track.states[name] = intervals(rows(states[i], F, F)); });
  return track;
}

async function unpacked() {
  const bytes = await inflated(), text = new TextDecoder().decode(bytes.subarray(0, facts.texts_bytes));
  const rows = reader(bytes, facts.texts_bytes);
  const connections = facts.connections.map(one => {
    const tracks = one.rows.map(counts => unpackTrack(rows, counts));
    const [begins, lengths, names, reasons] = rows(one.trips, Float64Array, Float64Array, Uint32Array, Uint8Array);
    const ends = begins.map((begin, i) => begin + lengths[i]);
    const trips = { lengths, names, reasons, order: sorted(ends), sums: sums(lengths) };
    return { ...one, tracks, trips };
  });
  return { texts: text.split("\n"), connections };
}
