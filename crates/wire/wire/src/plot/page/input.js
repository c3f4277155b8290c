/* SPDX-License-Identifier: MIT */
// Handlers for wheel, drag, click and keys, and the start of the page.
listen({
  wheel(event, px, py) {
    const panel = chosen() && (event.shiftKey || event.ctrlKey) && panelAt(py);
    if (panel) zoomBytes(panel.direction, Math.exp(clamp((event.deltaY || event.deltaX) / 300, -1, 1)), panel.byteAt(py));
    return panel;
  },
  grab(drag) { drag.panel = chosen() && panelAt(drag.at[1]); },
  moved({ panel, last }, [, py]) {
    const by = py - last[1];
    // The byte range follows the data until the user zooms or moves it.
    if (panel && view.bytes[panel.direction]) panBytes(panel.direction, by / (panel.bottom - panel.top));
    if (!chosen()) scroll -= by / LANE;
  },
  box({ panel, at }, [, py]) {
    if (panel && Math.abs(py - at[1]) > 4) view.bytes[panel.direction] = [at[1], py].map(panel.byteAt).sort(inOrder);
  },
  click(event, px, py) {
    if (px < GUTTER && chosen()) return;
    if (event.shiftKey) return timeline.mark({ b: timeAt(px) });
    if (!chosen()) { const lane = laneAt(py); return lane === null ? undefined : choose(lane); }
    const found = hit(px, py);
    if (found && found.message) pick(found.message); else timeline.mark({ a: timeAt(px) });
  },
  hover(event, px, py) {
    const lines = chosen() ? aboutPlace(px, py) : aboutLane(px, py);
    showTip(event, lines && lines.join("\n"));
  },
});
canvas.addEventListener("dblclick", event => {
  const [px, py] = pointIn(event), found = chosen() && hit(px, py);
  if (found && found.message) return zoomTo(found.message);
  if (!found || found.packet === undefined) return;
  const time = found.panel.track.packets.at[found.packet];
  timeline.show(time - 5e5, time + 5e5);
});

function aboutPlace(px, py) {
  const found = hit(px, py);
  if (!found) return null;
  const { track } = found.panel, step = timeline.length / 1000;
  if (found.message) {
    const { last, length, sequence, name } = track.messages, i = found.message.index;
    return [`${nameOf(name[i])}${suffix(name[i])}  ${number(sequence[i])}`,
      `${number(length[i])} bytes at ${timeText(last[i], step)}`, STATE_NAMES[stateUntil(track, last[i])]];
  }
  if (found.packet !== undefined) {
    const { at, offset, length, flags } = track.packets, i = found.packet;
    const more = (flags[i] & 1 ? ", retransmitted" : "") + (flags[i] & 2 ? ", opens or closes" : "");
    return [`packet of ${counted(length[i], "byte")}${more}`, `at offset ${number(offset[i])}, ${timeText(at[i], step)}`];
  }
  const at = stepAt(track, timeAt(px)), lines = [`${timeText(timeAt(px), step)}, byte ${number(found.panel.byteAt(py))}`];
  const [, acknowledged, edge] = track.steps;
  if (at >= 0) lines.push(`acknowledged ${number(acknowledged[at])}, window ${number(edge[at] - acknowledged[at])}`);
  return lines;
}
function aboutLane(px, py) {
  const lane = laneAt(py);
  if (lane === null) return null;
  const one = data.connections[lane];
  return [`connection ${one.number}: ${one.client} → ${one.server}`,
    `${bytesText(one.bytes[0])} of requests, ${bytesText(one.bytes[1])} of replies and events`, "click to show this connection"];
}

const underPointer = () => (pointer && panelAt(pointer[1]) || panels()[0]).direction;
function upOrDown(by, isZoom) {
  if (!chosen()) { scroll += by; ask(); }
  else if (isZoom) zoomBytes(underPointer(), by < 0 ? 0.7 : 1 / 0.7);
  else panBytes(underPointer(), -by * 0.15);
}
const fit = () => { view.bytes = [null, null]; ask(); };
const setWindow = is => { view.hasWindow = is; element("window").checked = is; ask(); };
const setHelp = is => { element("help").hidden = !is; element("keys").setAttribute("aria-expanded", is); };
const toAnswer = () => { const other = view.picked && answer(view.picked); if (other) pick(other, true); };
const step = by => {
  const count = data.connections.length;
  if (count) choose(((view.connection ?? -by) + by + count) % count);
};
function forget() { setHelp(false); view.picked = null; timeline.clear(); describe(); }

const KEYS = {
  ...timeline.keys(pointed),
  ArrowUp: event => upOrDown(-1, event.shiftKey), ArrowDown: event => upOrDown(1, event.shiftKey),
  f: fit, w: () => setWindow(!view.hasWindow), Escape: forget,
  n: () => go(1), p: () => go(-1), r: toAnswer, Enter: () => view.picked && zoomTo(view.picked),
  o: () => choose(null), 2: () => choosePanels([0, 1]), 3: () => choosePanels([0]), 4: () => choosePanels([1]),
  "[": () => step(-1), "]": () => step(1), "?": () => setHelp(element("help").hidden),
};
const BUTTONS = {
  all: KEYS[0], in: KEYS["+"], out: KEYS["-"], between: KEYS.z, fit,
  overview: () => choose(null), both: () => choosePanels([0, 1]), requests: () => choosePanels([0]),
  replies: () => choosePanels([1]), keys: () => setHelp(element("help").hidden),
};
bind(KEYS, BUTTONS);
element("window").onchange = event => setWindow(event.target.checked);

async function start() {
  document.title = facts.title; element("title").textContent = facts.title;
  useColours(["packet", "resent", "acknowledged", "window", "picked", ...STATES]); writeLegend();
  data = await unpacked();
  const messages = data.connections.reduce((sum, one) => sum + one.rows[0][2] + one.rows[1][2], 0);
  const since = "since " + new Date(facts.began_s * 1000).toLocaleString();
  const summary = [counted(data.connections.length, "connection"), counted(messages, "message"), duration(timeline.end - timeline.begin), since];
  element("facts").textContent = summary.join(" · ");
  const left = facts.left_out.filter(([, count]) => count).map(([what, count]) => `${number(count)} ${what}`).join(", ");
  if (left) element("warning").textContent = `Not in this page: ${left}. Plot a shorter time with --from and --to.`;
  listConnections();
  choose(data.connections.length ? busiest() : null);
  draw();
  document.documentElement.dataset.ready = "true";
}
start();
