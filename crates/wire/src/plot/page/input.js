// Wheel, drag, click and keys; and the beginning of it all.
let drag = null, pointer = null;

const place = event => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const [px, py] = place(event), turned = event.deltaY || event.deltaX, factor = Math.exp(Math.max(-1, Math.min(1, turned / 300)));
  const panel = chosen() && (event.shiftKey || event.ctrlKey) && panelAt(py);
  if (panel) zoomBytes(panel.direction, factor, panel.placeAt(py));
  else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 800);
  else zoom(factor, timeAt(Math.max(px, GUTTER)));
}, { passive: false });
canvas.addEventListener("pointerdown", event => {
  const [px, py] = place(event);
  const panel = chosen() && panelAt(py);
  drag = { px, py, from: view.from, to: view.to, isBox: event.shiftKey, hasMoved: false, lastY: py, panel };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", event => {
  const [px, py] = place(event);
  pointer = [px, py];
  if (!drag) return hover(event, px, py);
  if (Math.abs(px - drag.px) > 3 || Math.abs(py - drag.py) > 3) { drag.hasMoved = true; hideTip(); }
  if (!drag.hasMoved) return;
  if (drag.isBox) { draw(); return drawBox(px, py); }
  const move = (drag.px - px) / (width - GUTTER) * (drag.to - drag.from);
  const shift = Math.min(Math.max(move, begin - drag.from), end - drag.to);
  view.from = drag.from + shift; view.to = drag.to + shift;
  // Bytes follow the data by themselves until somebody takes hold of them.
  const { panel } = drag;
  if (panel && view.bytes[panel.direction]) panBytes(panel.direction, (py - drag.lastY) / (panel.bottom - panel.top));
  if (!chosen()) scroll -= (py - drag.lastY) / LANE;
  drag.lastY = py; ask();
});
function drawBox(px, py) {
  pen.strokeStyle = colours.ink;
  pen.setLineDash([4, 3]); pen.strokeRect(drag.px, drag.py, px - drag.px, py - drag.py); pen.setLineDash([]);
}
canvas.addEventListener("pointerup", event => {
  const [px, py] = place(event), done = drag;
  drag = null;
  if (!done) return;
  if (!done.hasMoved) return click(event, px, py);
  if (!done.isBox) return;
  const inOrder = (one, other) => one - other, times = [done.px, px].map(timeAt).sort(inOrder);
  const hasBytes = done.panel && Math.abs(py - done.py) > 4;
  if (hasBytes) view.bytes[done.panel.direction] = [done.py, py].map(done.panel.placeAt).sort(inOrder);
  if (Math.abs(px - done.px) > 4) show(...times); else ask();
});
canvas.addEventListener("pointerleave", () => { hideTip(); pointer = null; });
function click(event, px, py) {
  if (px < GUTTER && chosen()) return;
  if (event.shiftKey) { view.b = timeAt(px); return ask(); }
  if (!chosen()) { const lane = laneAt(py); return lane === null ? undefined : choose(lane); }
  const found = hit(px, py);
  if (found && found.message) return pick(found.message);
  view.a = timeAt(px); ask();
}
canvas.addEventListener("dblclick", event => {
  const [px, py] = place(event), found = chosen() && hit(px, py);
  if (found && found.message) return zoomTo(found.message);
  if (!found || found.packet === undefined) return;
  const time = found.panel.track.packets.at[found.packet];
  show(time - 5e5, time + 5e5);
});

function hover(event, px, py) {
  const lines = chosen() ? aboutPlace(px, py) : aboutLane(px, py);
  showTip(event, lines && lines.join("\n"));
}
function aboutPlace(px, py) {
  const found = hit(px, py);
  if (!found) return null;
  const { track } = found.panel, step = (view.to - view.from) / 1000;
  if (found.message) {
    const { last, length, sequence, name } = track.messages, i = found.message.index;
    return [`${nameOf(name[i])}${suffix(name[i])}  ${number(sequence[i])}`,
      `${number(length[i])} bytes at ${timeText(last[i], step)}`, STATE_NAMES[stateUntil(track, last[i])]];
  }
  if (found.packet !== undefined) {
    const { at, offset, length, flags } = track.packets, i = found.packet;
    const more = (flags[i] & 1 ? ", sent again" : "") + (flags[i] & 2 ? ", opens or closes" : "");
    return [`packet of ${counted(length[i], "byte")}${more}`, `from ${number(offset[i])} on, at ${timeText(at[i], step)}`];
  }
  const at = stepAt(track, timeAt(px)), lines = [`${timeText(timeAt(px), step)}, byte ${number(found.panel.placeAt(py))}`];
  const [, acknowledged, edge] = track.steps;
  if (at >= 0) lines.push(`acknowledged ${number(acknowledged[at])}, window ${number(edge[at] - acknowledged[at])}`);
  return lines;
}
function aboutLane(px, py) {
  const lane = laneAt(py);
  if (lane === null) return null;
  const one = data.connections[lane];
  return [`connection ${one.number}: ${one.client} → ${one.server}`,
    `${bytesText(one.bytes[0])} of requests, ${bytesText(one.bytes[1])} of replies and events`, "click to look into it"];
}

const mark = name => { view[name] = pointer && pointer[0] >= GUTTER ? timeAt(pointer[0]) : (view.from + view.to) / 2; ask(); };
const underPointer = () => (pointer && panelAt(pointer[1]) || panels()[0]).direction;
function upOrDown(by, isZoom) {
  if (!chosen()) { scroll += by; ask(); }
  else if (isZoom) zoomBytes(underPointer(), by < 0 ? 0.7 : 1 / 0.7);
  else panBytes(underPointer(), -by * 0.15);
}
const toMarkers = () => { if (isMarked()) show(...spanOf()); };
const fit = () => { view.bytes = [null, null]; ask(); };
const setWindow = is => { view.hasWindow = is; element("window").checked = is; ask(); };
const setHelp = is => { element("help").hidden = !is; element("keys").setAttribute("aria-expanded", is); };
const toAnswer = () => { const other = view.picked && answer(view.picked); if (other) pick(other, true); };
const step = by => {
  const count = data.connections.length;
  if (count) choose(((view.connection ?? -by) + by + count) % count);
};
function forget() { setHelp(false); view.a = view.b = view.picked = null; ask(); describe(); }

const KEYS = {
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: () => show(begin, end), z: toMarkers,
  ArrowLeft: event => pan(event.shiftKey ? -0.9 : -0.15), ArrowRight: event => pan(event.shiftKey ? 0.9 : 0.15),
  PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
  Home: () => show(begin, begin + view.to - view.from), End: () => show(end - (view.to - view.from), end),
  ArrowUp: event => upOrDown(-1, event.shiftKey), ArrowDown: event => upOrDown(1, event.shiftKey),
  f: fit, w: () => setWindow(!view.hasWindow), a: () => mark("a"), b: () => mark("b"), Escape: forget,
  n: () => go(1), p: () => go(-1), r: toAnswer, Enter: () => view.picked && zoomTo(view.picked),
  o: () => choose(null), 2: () => choosePanels([0, 1]), 3: () => choosePanels([0]), 4: () => choosePanels([1]),
  "[": () => step(-1), "]": () => step(1), "?": () => setHelp(element("help").hidden),
};
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  // A button or a row that has the focus keeps its own key.
  if (event.key === "Enter" && event.target !== document.body && event.target !== canvas && event.target !== window) return;
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(event); }
});
const BUTTONS = {
  all: () => show(begin, end), in: () => zoom(0.6), out: () => zoom(1 / 0.6), between: toMarkers, fit,
  overview: () => choose(null), both: () => choosePanels([0, 1]), requests: () => choosePanels([0]),
  replies: () => choosePanels([1]), keys: () => setHelp(element("help").hidden),
};
for (const [id, act] of Object.entries(BUTTONS)) element(id).onclick = act;
element("window").onchange = event => setWindow(event.target.checked);
addEventListener("resize", ask);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); ask(); });

function fail(error) {
  element("warning").textContent = `This page could not be read: ${error && error.message || error}`;
  document.documentElement.dataset.failed = "true";
}
addEventListener("error", event => fail(event.error || event.message));
addEventListener("unhandledrejection", event => fail(event.reason));

async function start() {
  document.title = facts.title; element("title").textContent = facts.title;
  readColours(); writeLegend();
  data = await unpacked();
  const messages = data.connections.reduce((sum, one) => sum + one.rows[0][2] + one.rows[1][2], 0);
  const since = "since " + new Date(facts.began_s * 1000).toLocaleString();
  const told = [counted(data.connections.length, "connection"), counted(messages, "message"), duration(end - begin), since];
  element("facts").textContent = told.join(" · ");
  const left = facts.left_out.filter(([, count]) => count).map(([what, count]) => `${number(count)} ${what}`).join(", ");
  if (left) element("warning").textContent = `Not in this page: ${left} (plot less time with --from and --to)`;
  listConnections();
  choose(data.connections.length ? busiest() : null);
  draw();
  document.documentElement.dataset.ready = "true";
}
start();
