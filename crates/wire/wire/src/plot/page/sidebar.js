/* SPDX-License-Identifier: MIT */
// The side panel: list of connections, statistics of the visible or marked range, and the selected message.
const hint = element("message").firstElementChild;
// No table is shown for ranges with more round trips, because it would make moving and zooming slow.
const MAX_TRIPS = 50000;

function dotted(state, text) {
  const out = document.createElement("span"), dot = out.appendChild(document.createElement("i"));
  dot.className = "dot"; dot.style.background = `var(--${state})`;
  out.append(text);
  return out;
}

function listConnections() {
  const head = row(["client", "messages", "bytes", "trips", "waited"], "th");
  element("connections").replaceChildren(head, ...data.connections.map(listed));
}
function listed(one, i) {
  const messages = one.rows[0][2] + one.rows[1][2], waited = one.trips.sums[one.trips.sums.length - 1];
  const line = row([`${one.number}  ${one.client}`, number(messages), bytesText(total(one)),
    number(one.trips.lengths.length), duration(waited)]);
  line.dataset.number = one.number; line.tabIndex = 0;
  line.title = `${one.client} to ${one.server}, ${one.ending}` + (one.is_joined ? ", its start was not captured" : "");
  line.onclick = () => choose(i);
  line.onkeydown = event => { if (event.key === "Enter") choose(i); };
  return line;
}

function describeSpan() {
  const [from, to] = timeline.span, all = chosen() ? [chosen()] : data.connections;
  const what = timeline.isMarked ? `A to B: ${duration(timeline.b - timeline.a)}` : `Visible: ${duration(to - from)}`;
  element("span-title").textContent = what + (chosen() ? `, connection ${chosen().number}` : ", all connections");
  const trips = sumTrips(all, from, to);
  describeStates(all, from, to, trips);
  describeNames(all, from, to);
  element("trips-title").hidden = !trips.count;
  const worst = [...trips.byName].sort((one, other) => other[1].ns - one[1].ns).slice(0, 100);
  const head = worst.length ? [row(["request", "count", "avoidable", "waited"], "th")] : [];
  element("trips").replaceChildren(...head, ...worst.map(([name, sum]) => {
    const line = row([facts.names[name], number(sum.count), number(sum.avoidable), duration(sum.ns)]);
    line.title = [...sum.why].join("; ");
    return line;
  }));
}
function sumTrips(all, from, to) {
  const byName = new Map();
  let count = 0, ns = 0;
  for (const { trips: { order, lengths, names, reasons, sums } } of all) {
    const first = lower(order.highest, from), last = upper(order.lowest, to);
    if (last <= first) continue;
    count += last - first; ns += sums[last] - sums[first];
    if (last - first > MAX_TRIPS) continue;
    for (let i = first; i < last; i++) {
      const sum = byName.get(names[i]) || { count: 0, ns: 0, avoidable: 0, why: new Set() };
      sum.count++; sum.ns += lengths[i];
      if (reasons[i]) { sum.avoidable++; sum.why.add(facts.reasons[reasons[i] - 1]); }
      byName.set(names[i], sum);
    }
  }
  return { byName, count, ns };
}
function describeStates(all, from, to, trips) {
  const blocked = name => [0, 1].map(direction =>
    all.reduce((sum, one) => sum + covered(one.tracks[direction].states[name], from, to), 0));
  // Time before and after a connection is not idle time.
  const there = one => Math.max(0, Math.min(to, one.ended_ns) - Math.max(from, one.opened_ns));
  const whole = all.reduce((sum, one) => sum + there(one), 0);
  const states = Object.fromEntries(STATES.slice(1).map(name => [name, blocked(name)]));
  states.idle = [0, 1].map(direction =>
    Math.max(0, STATES.slice(1).reduce((rest, name) => rest - states[name][direction], whole)));
  const lines = STATES.map(name => row([dotted(name, STATE_NAMES[name]), ...states[name].map(duration)]));
  const bytes = [0, 1].map(direction => all.reduce((sum, one) => sum + newBytes(one.tracks[direction], from, to), 0));
  element("states").replaceChildren(row(["", "requests", "replies"], "th"), ...lines, row(["bytes", ...bytes.map(number)]),
    row(["round trips", number(trips.count), duration(trips.ns)]));
}
function newBytes(track, from, to) {
  const [first, last] = packetsIn(track, from, to), { ends, offset } = track.packets;
  return last > first ? ends[last - 1] - (first > 0 ? ends[first - 1] : offset[0]) : 0;
}
function describeNames(all, from, to) {
  const sums = new Float64Array(2 * facts.names.length * KINDS.length);
  let messages = 0;
  for (const track of all.flatMap(one => one.tracks)) {
    const [first, last] = messagesIn(track, from, to);
    if (last <= first) continue;
    messages += last - first;
    addCounts(track.messages, first, last, sums);
  }
  const names = [];
  for (let name = 0; name < sums.length / 2; name++)
    if (sums[2 * name]) names.push({ name, count: sums[2 * name], bytes: sums[2 * name + 1] });
  names.sort((one, other) => other.bytes - one.bytes);
  const lines = names.slice(0, 200).map(({ name, count, bytes }) => row([nameOf(name) + suffix(name), number(count), number(bytes)]));
  element("names").replaceChildren(row([counted(messages, "message"), "count", "bytes"], "th"), ...lines);
}
const suffix = name => ({ Reply: " (reply)", Event: " (event)", Error: " (error)" })[kindOf(name)] || "";

// Shows which connection and panels are visible, and the selected message.
function describe() {
  const lines = element("connections").querySelectorAll("tr[data-number]");
  lines.forEach((line, i) => line.setAttribute("aria-selected", i === view.connection));
  const panels = chosen() ? view.panels.join() : null;
  const pressed = { overview: panels === null, both: panels === "0,1", requests: panels === "0", replies: panels === "1" };
  for (const [id, is] of Object.entries(pressed)) element(id).setAttribute("aria-pressed", is);
  if (view.picked && chosen()) return describeMessage(view.picked);
  element("message-title").textContent = "Message";
  element("message").replaceChildren(hint);
}
function describeMessage({ direction, index }) {
  const track = chosen().tracks[direction], { name, sequence, length, offset, last, lag, text } = track.messages;
  const other = answer({ direction, index });
  const lines = [
    ["number", number(sequence[index])],
    ["bytes", `${number(length[index])} at offset ${number(offset[index])}`],
    ["time", timeText(last[index], 1000)],
    ["state before", STATE_NAMES[stateUntil(track, last[index])]],
  ];
  if (lag[index] > 0) lines.push(["transfer", `${duration(lag[index])} from first to last byte`]);
  if (other) {
    const away = Math.abs(chosen().tracks[other.direction].messages.last[other.index] - last[index]);
    lines.push([answerName(other), `${duration(away)} ${direction ? "before" : "after"}`]);
  }
  const buttons = document.createElement("div"), about = document.createElement("table");
  const button = (said, act) => { const one = buttons.appendChild(document.createElement("button")); one.textContent = said; one.onclick = act; };
  buttons.className = "buttons";
  button("Zoom in", () => zoomTo(view.picked));
  if (other) button("Show " + answerName(other), () => pick(other, true));
  button("Previous", () => go(-1));
  button("Next", () => go(1));
  about.append(...lines.map(line => row(line)));
  element("message-title").textContent = `${kindOf(name[index]).replace("SetupReply", "Setup reply")}: ${nameOf(name[index])}`;
  element("message").replaceChildren(about, buttons, fieldsOf(text[index]));
}
function answerName({ direction, index }) {
  const kind = kindOf(chosen().tracks[direction].messages.name[index]);
  return { Setup: "request", Request: "request", Error: "error" }[kind] || "reply";
}
function fieldsOf(number) {
  if (!number) {
    const said = document.createElement("p");
    said.className = "soft"; said.textContent = "Its fields are not in this page. To include them, plot a shorter time with --from and --to.";
    return said;
  }
  const table = document.createElement("table"), fields = (data.texts[number - 1] || "").split("\t").filter(Boolean);
  table.append(...fields.map(field => { const space = field.indexOf(" "); return row([field.slice(0, space), field.slice(space + 1)]); }));
  return table;
}
function go(by) {
  if (!view.picked) return;
  const { direction } = view.picked, index = view.picked.index + by;
  if (index >= 0 && index < chosen().tracks[direction].messages.last.length) pick({ direction, index }, true);
}

function writeLegend() {
  const bar = "M9 1V11M6 1H12M6 11H12", stair = "M0 9H7V4H18";
  const entry = (name, said, path, more = "") => {
    const one = element("legend").appendChild(document.createElement("span"));
    const line = `<svg viewBox="0 0 18 12"><path d="${path}" fill="none" stroke="var(--${name})" stroke-width="1.5"${more}/></svg>`;
    one.innerHTML = path ? line : `<i class="dot" style="background:var(--${name});margin:0"></i>`;
    one.append(said);
  };
  for (const name of STATES) entry(name, STATE_NAMES[name]);
  entry("packet", "packet", bar);
  entry("resent", "retransmitted", bar);
  entry("acknowledged", "acknowledged", stair);
  entry("window", "receive window", stair, ' stroke-dasharray="3 2"');
}
