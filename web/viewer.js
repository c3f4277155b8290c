/* SPDX-License-Identifier: MIT */
// A viewer: a canvas with a time axis along the top, operated by wheel, drag, click and keys. The page provides
// `timeline`, a Timeline, and `draw`, which redraws everything.
/* global timeline, draw */

const canvas = element("view"), pen = canvas.getContext("2d"), stage = element("stage");
const TOP = 30, FONT = '12px system-ui, "DejaVu Sans", sans-serif';
let width = 0, height = 0, colours = {}, isAsked = false, pointer = null;

const x = time => timeline.x(time), timeAt = px => timeline.at(px);

// Schedules one redraw for all requests before the next frame.
function ask() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => { isAsked = false; draw(); });
}

// Clears the canvas and sets its size.
function prepare(wide, tall) {
  const scale = devicePixelRatio || 1, [across, down] = [wide * scale, tall * scale].map(Math.round);
  width = wide; height = tall; timeline.right = wide;
  if (canvas.width !== across || canvas.height !== down) { canvas.width = across; canvas.height = down; }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.fillStyle = colours.paper; pen.fillRect(0, 0, width, height);
  pen.font = FONT; pen.textBaseline = "middle"; pen.lineWidth = 1;
}
function drawGrid(top, bottom) {
  pen.fillStyle = colours.grid;
  for (const time of timeline.ticks()) pen.fillRect(Math.round(x(time)), top, 1, bottom - top);
}
// Draws the time axis over everything that extends into it.
function drawTimes() {
  const { step, left } = timeline;
  pen.fillStyle = colours.paper; pen.fillRect(0, 0, width, TOP - 1);
  pen.fillStyle = colours.soft; pen.textAlign = "center";
  for (const time of timeline.ticks()) {
    const text = timeText(time, step), half = pen.measureText(text).width / 2, px = x(time);
    if (px - half < left - 40 || px + half > width - 2) continue;
    pen.fillText(text, px, 10); pen.fillRect(Math.round(px), TOP - 7, 1, 6);
  }
}
function drawMarkers() {
  pen.textAlign = "left";
  for (const name of ["a", "b"]) {
    const time = timeline[name];
    if (time === null || time < timeline.from || time > timeline.to) continue;
    const px = Math.round(x(time));
    pen.fillStyle = colours[name]; pen.fillRect(px, TOP - 8, 1.5, height);
    pen.fillRect(px, TOP - 14, 13, 13); pen.fillStyle = colours.paper; pen.fillText(name.toUpperCase(), px + 3, TOP - 7);
  }
  if (!timeline.isMarked) return;
  const [from, to] = timeline.span.map(time => clamp(x(time), timeline.left, width));
  pen.fillStyle = colours.focus; pen.globalAlpha = 0.07; pen.fillRect(from, TOP, to - from, height); pen.globalAlpha = 1;
}
function drawBox([left, top], [right, bottom]) {
  pen.strokeStyle = colours.ink;
  pen.setLineDash([4, 3]); pen.strokeRect(left, top, right - left, bottom - top); pen.setLineDash([]);
}

const inOrder = (one, other) => one - other;
// The time under the pointer, or the middle of the visible range.
const pointed = () => pointer && pointer[0] >= timeline.left ? timeAt(pointer[0]) : timeline.middle;
const pointIn = event => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

// Connects the pointer to the page's handlers: `click` and `hover`, and the optional ones `wheel` (returns whether it
// handled the event), `grab` and `moved` (start and progress of a drag) and `box` (a rectangle was drawn with Shift).
function listen(page) {
  let drag = null;
  canvas.addEventListener("wheel", event => {
    // With Alt, the wheel scrolls the canvas if the canvas does not fit.
    if (event.altKey && stage.scrollHeight > stage.clientHeight) return;
    event.preventDefault();
    const at = pointIn(event);
    if (!page.wheel || !page.wheel(event, ...at)) timeline.wheel(event, at[0]);
  }, { passive: false });
  canvas.addEventListener("pointerdown", event => {
    const at = pointIn(event);
    drag = { at, last: at, isBox: event.shiftKey, hasMoved: false, move: timeline.drag() };
    if (page.grab) page.grab(drag);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    pointer = pointIn(event);
    if (!drag) return page.hover(event, ...pointer);
    if (pointer.some((value, i) => Math.abs(value - drag.at[i]) > 3)) { drag.hasMoved = true; hideTip(); }
    if (!drag.hasMoved) return;
    if (drag.isBox) { draw(); return drawBox(drag.at, pointer); }
    drag.move(pointer[0] - drag.at[0]);
    if (page.moved) page.moved(drag, pointer);
    drag.last = pointer;
  });
  canvas.addEventListener("pointerup", event => {
    const at = pointIn(event), done = drag;
    drag = null;
    if (!done) return;
    if (!done.hasMoved) return page.click(event, ...at);
    if (!done.isBox) return;
    if (page.box) page.box(done, at);
    if (Math.abs(at[0] - done.at[0]) > 4) timeline.show(...[done.at[0], at[0]].map(timeAt).sort(inOrder)); else ask();
  });
  // The touch has become a scroll.
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { hideTip(); pointer = null; });
}

// Binds keys and buttons by name.
function bind(keys, buttons) {
  addEventListener("keydown", event => {
    // Keys of a text field are text.
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.type === "search") return;
    // Leave Enter to the focused button or row.
    if (event.key === "Enter" && event.target !== document.body && event.target !== canvas && event.target !== window) return;
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(event); }
  });
  for (const [id, act] of Object.entries(buttons)) element(id).onclick = act;
}

// Reads the named colours from the style, and reads them again after a change between light and dark.
function useColours(names) {
  const read = () => { colours = Object.fromEntries([...names, "paper", "raised", "ink", "soft", "line", "grid", "a", "b", "focus"]
    .map(name => [name, colour(name)])); };
  read();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { read(); ask(); });
  addEventListener("resize", ask);
}

// Shows errors in the page, not only on the console.
function fail(error) {
  const said = element("warning");
  if (said) said.textContent = `This page cannot be shown: ${error && error.message || error}`;
  document.documentElement.dataset.failed = "true";
}
addEventListener("error", event => fail(event.error || event.message));
addEventListener("unhandledrejection", event => fail(event.reason));
