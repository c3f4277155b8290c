// Beside the canvas: the list of connections, figures of the shown or marked time, and the message picked out.
const element = id => document.getElementById(id);
function row(cells, kind) {
  const out = document.createElement("tr");
  for (const text of cells) { const cell = out.appendChild(document.createElement(kind || "td")); if (text instanceof Node) cell.append(text); else { cell.textContent = text; cell.title = text; } }
  return out;
}
function dotted(state, text) {
  const out = document.createElement("span"), dot = out.appendChild(document.createElement("i"));
  dot.className = "dot"; dot.style.background = `var(--${state})`; out.append(text);
  return out;
}

function listConnections() {
  const rows = data.connections.map((one, i) => {
    const waited = one.trips.sums[one.trips.sums.length - 1], line = row([`${one.number}  ${one.client}`, number(one.rows[0][2] + one.rows[1][2]), bytesText(total(one)), number(one.trips.lengths.length), duration(waited)]);
    line.dataset.number = one.number; line.tabIndex = 0; line.title = `${one.client} to ${one.server}` + (one.is_joined ? ", its beginning was not captured" : "") + `, ${one.ending}`;
    line.onclick = () => choose(i); line.onkeydown = event => { if (event.key === "Enter") choose(i); };
    return line;
  });
  element("connections").replaceChildren(row(["client", "messages", "bytes", "trips", "waited"], "th"), ...rows);
}

// The time that figures are about: from marker to marker, or all that is shown.
const spanOf = () => view.a !== null && view.b !== null ? [Math.min(view.a, view.b), Math.max(view.a, view.b)] : [view.from, view.to];
function describeSpan() {
  const [from, to] = spanOf(), isMarked = view.a !== null && view.b !== null, all = chosen() ? [chosen()] : data.connections;
  element("span-title").textContent = (isMarked ? `A to B: ${duration(view.b - view.a)}` : `Shown: ${duration(to - from)}`) + (chosen() ? `, connection ${chosen().number}` : ", all connections");
  const states = [{}, {}], bytes = [0, 0], counts = new Map(), trips = new Map();
  let waits = 0, waited = 0, messages = 0;
  for (const one of all) {
    one.tracks.forEach((track, direction) => {
      for (const name of STATES.slice(1)) states[direction][name] = (states[direction][name] || 0) + covered(track.states[name], from, to);
      const [first, last] = packetsIn(track, from, to), { ends } = track.packets;
      if (last > first) bytes[direction] += ends[last - 1] - (first > 0 ? ends[first - 1] : track.packets.offset[0]);
      messages += countNames(track.messages, messagesIn(track, from, to), counts);
    });
    const { order, lengths, names, reasons, sums } = one.trips, first = lower(order.highest, from), last = upper(order.lowest, to);
    waits += Math.max(0, last - first); waited += last > first ? sums[last] - sums[first] : 0;
    // Of a million the exact table would stop the hand that moves.
    if (last - first <= MOST_TRIPS) for (let i = first; i < last; i++) {
      const sum = trips.get(names[i]) || { count: 0, ns: 0, avoidable: 0, why: new Set() };
      sum.count++; sum.ns += lengths[i]; if (reasons[i]) { sum.avoidable++; sum.why.add(facts.reasons[reasons[i] - 1]); }
      trips.set(names[i], sum);
    }
  }
  const blocked = direction => STATES.slice(1).reduce((sum, name) => sum + states[direction][name], 0);
  // A connection that is not there is not idle.
  const whole = all.reduce((sum, one) => sum + Math.max(0, Math.min(to, one.ended_ns) - Math.max(from, one.opened_ns)), 0);
  const line = name => row([dotted(name, STATE_NAMES[name]), ...[0, 1].map(direction => duration(name === "idle" ? Math.max(0, whole - blocked(direction)) : states[direction][name] || 0))]);
  element("states").replaceChildren(row(["", "requests", "replies"], "th"), ...STATES.map(line), row(["bytes", ...bytes.map(number)]), row(["round trips waited for", number(waits), duration(waited)]));
  const names = [...counts].sort((one, other) => other[1].bytes - one[1].bytes).slice(0, 200);
  element("names").replaceChildren(row([counted(messages, "message"), "count", "bytes"], "th"), ...names.map(([name, sum]) => row([nameOf(name) + suffix(name), number(sum.count), number(sum.bytes)])));
  const worst = [...trips].sort((one, other) => other[1].ns - one[1].ns).slice(0, 100);
  element("trips-title").hidden = !waits;
  element("trips").replaceChildren(...(worst.length ? [row(["for", "count", "avoidable", "waited"], "th")] : []), ...worst.map(([name, sum]) => { const line = row([facts.names[name], number(sum.count), number(sum.avoidable), duration(sum.ns)]); line.title = [...sum.why].join("; "); return line; }));
}
const MOST_TRIPS = 50000;
const suffix = name => ({ Reply: " (reply)", Event: " (event)", Error: " (error)" })[kindOf(name)] || "";
function countNames(messages, [first, last], counts) {
  if (last <= first) return 0;
  const before = countedUntil(messages, first), after = countedUntil(messages, last);
  for (let name = 0; name < after.length / 2; name++) {
    const count = after[2 * name] - before[2 * name];
    if (!count) continue;
    const sum = counts.get(name) || { count: 0, bytes: 0 };
    sum.count += count; sum.bytes += after[2 * name + 1] - before[2 * name + 1]; counts.set(name, sum);
  }
  return last - first;
}

// Which connection and which panels are shown, and the message picked out.
function describe() {
  element("connections").querySelectorAll("tr[data-number]").forEach((line, i) => line.setAttribute("aria-selected", i === view.connection));
  const pressed = { overview: !chosen(), both: chosen() && view.panels.length === 2, requests: chosen() && view.panels.join() === "0", replies: chosen() && view.panels.join() === "1" };
  for (const [id, is] of Object.entries(pressed)) element(id).setAttribute("aria-pressed", Boolean(is));
  const box = element("message");
  if (!view.picked || !chosen()) { element("message-title").textContent = "Message"; return; }
  const { direction, index } = view.picked, messages = chosen().tracks[direction].messages, name = messages.name[index], kind = kindOf(name);
  element("message-title").textContent = `${kind.replace("SetupReply", "Setup reply")}: ${nameOf(name)}`;
  const other = answer(view.picked), others = other && chosen().tracks[other.direction].messages;
  const lines = [["number", number(messages.sequence[index])], ["bytes", `${number(messages.length[index])} from ${number(messages.offset[index])} on`], ["time", timeText(messages.last[index], 1000)]];
  if (messages.lag[index] > 0) lines.push(["on the way", `${duration(messages.lag[index])} from its first byte to its last`]);
  lines.push(["until then", STATE_NAMES[stateUntil(chosen().tracks[direction], messages.last[index])]]);
  if (other) lines.push([direction ? "request" : "reply", `${kindOf(others.name[other.index]) === "Error" ? "error " + nameOf(others.name[other.index]) + ", " : ""}${duration(Math.abs(others.last[other.index] - messages.last[index]))} ${direction ? "before" : "later"}`]);
  const buttons = document.createElement("div"), button = (text, act) => { const one = buttons.appendChild(document.createElement("button")); one.textContent = text; one.onclick = act; };
  buttons.className = "buttons"; button("Zoom to it", () => zoomTo(view.picked));
  if (other) button(direction ? "Its request" : kindOf(others.name[other.index]) === "Error" ? "Its error" : "Its reply", () => pick(other, true));
  button("Previous", () => go(-1)); button("Next", () => go(1));
  const about = document.createElement("table"); about.append(...lines.map(line => row(line)));
  box.replaceChildren(about, buttons, fieldsOf(messages.text[index]));
}
function fieldsOf(text) {
  if (!text) { const said = document.createElement("p"); said.className = "soft"; said.textContent = "Its fields are not in this page: plot less time (--from, --to) to have them."; return said; }
  const table = document.createElement("table");
  for (const field of (data.texts[text - 1] || "").split("\t").filter(Boolean)) { const space = field.indexOf(" "); table.append(row([field.slice(0, space), field.slice(space + 1)])); }
  return table;
}
function go(by) {
  if (!view.picked) return;
  const index = view.picked.index + by;
  if (index >= 0 && index < chosen().tracks[view.picked.direction].messages.last.length) pick({ direction: view.picked.direction, index }, true);
}

function writeLegend() {
  const drawing = { idle: "", packet: "M9 1V11M6 1H12M6 11H12", again: "M9 1V11M6 1H12M6 11H12", acknowledged: "M0 9H7V4H18", window: "M0 9H7V4H18" };
  const entry = (name, text) => {
    const one = element("legend").appendChild(document.createElement("span"));
    one.innerHTML = drawing[name] ? `<svg viewBox="0 0 18 12"><path d="${drawing[name]}" fill="none" stroke="var(--${name})" stroke-width="1.5"${name === "window" ? ' stroke-dasharray="3 2"' : ""}/></svg>` : `<i class="dot" style="background:var(--${name});margin:0"></i>`;
    one.append(text);
  };
  for (const name of STATES) entry(name, STATE_NAMES[name]);
  entry("packet", "packet"); entry("again", "sent again"); entry("acknowledged", "acknowledged"); entry("window", "offered window");
}
