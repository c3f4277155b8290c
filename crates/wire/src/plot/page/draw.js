// The canvas: size, colours, the axis of time, and what panels and lanes have in common.
const canvas = element("view"), pen = canvas.getContext("2d"), stage = element("stage");
const GUTTER = 92, TOP = 30, FONT = '12px system-ui, "DejaVu Sans", sans-serif';
let width = 0, height = 0, colours = {}, isAsked = false;

const x = time => GUTTER + (time - view.from) / (view.to - view.from) * (width - GUTTER);
const timeAt = px => view.from + (px - GUTTER) / (width - GUTTER) * (view.to - view.from);

function readColours() {
  const names = ["paper", "raised", "ink", "soft", "line", "grid", "packet", "again", "acknowledged", "window", "a", "b", "picked"];
  colours = Object.fromEntries([...names, ...STATES].map(name => [name, colour(name)]));
}
function ask() { if (!isAsked) { isAsked = true; requestAnimationFrame(() => { isAsked = false; draw(); }); } }

function draw() {
  const scale = devicePixelRatio || 1;
  width = Math.max(stage.clientWidth, GUTTER + 60); height = Math.max(stage.clientHeight, 120);
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale);
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.fillStyle = colours.paper; pen.fillRect(0, 0, width, height);
  pen.font = FONT; pen.textBaseline = "middle"; pen.lineWidth = 1;
  if (chosen()) drawPanels(); else drawLanes();
  drawTimes(); drawMarkers();
  describeSpan();
}

function drawTimes() {
  const step = stepFor(view.to - view.from, width - GUTTER, 110);
  pen.fillStyle = colours.paper; pen.fillRect(0, 0, width, TOP - 1);
  pen.fillStyle = colours.soft; pen.textAlign = "center";
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    const text = timeText(time, step), half = pen.measureText(text).width / 2, px = x(time);
    if (px - half < GUTTER - 40 || px + half > width - 2) continue;
    pen.fillText(text, px, 10); pen.fillRect(Math.round(px), TOP - 7, 1, 6);
  }
}
function drawGrid(top, bottom) {
  const step = stepFor(view.to - view.from, width - GUTTER, 110);
  pen.fillStyle = colours.grid;
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step)
    pen.fillRect(Math.round(x(time)), top, 1, bottom - top);
}
function drawMarkers() {
  pen.textAlign = "left";
  for (const name of ["a", "b"]) {
    const time = view[name];
    if (time === null || time < view.from || time > view.to) continue;
    const px = Math.round(x(time));
    pen.fillStyle = colours[name]; pen.fillRect(px, TOP - 8, 1.5, height);
    pen.fillRect(px, TOP - 14, 13, 13); pen.fillStyle = colours.paper; pen.fillText(name.toUpperCase(), px + 3, TOP - 7);
  }
  if (!isMarked()) return;
  const [from, to] = spanOf().map(x);
  pen.fillStyle = colours.waiting; pen.globalAlpha = 0.07; pen.fillRect(from, TOP, to - from, height); pen.globalAlpha = 1;
}

// How much of each pixel a direction spent in each state but idle: the work depends on the width alone.
function statesByPixel(track) {
  const count = Math.ceil(width - GUTTER), names = STATES.slice(1), parts = names.map(() => new Float32Array(count));
  for (let i = 0; i < count; i++) {
    const from = timeAt(GUTTER + i), to = timeAt(GUTTER + i + 1);
    names.forEach((name, state) => { parts[state][i] = covered(track.states[name], from, to) / (to - from); });
  }
  return parts;
}
// A strip, each pixel filled as far as the state went on in it.
function drawStrip(parts, top, tall) {
  pen.fillStyle = colours.raised; pen.fillRect(GUTTER, top, width - GUTTER, tall);
  STATES.slice(1).forEach((name, state) => {
    pen.fillStyle = colours[name];
    for (let i = 0; i < parts[state].length; i++) {
      const part = parts[state][i];
      if (part <= 0) continue;
      let below = 0;
      for (let other = 0; other < state; other++) below += parts[other][i];
      pen.fillRect(GUTTER + i, top + tall * Math.max(0, 1 - below - part), 1, Math.max(tall * Math.min(part, 1), 1));
    }
  });
}
// Behind the data: the state that had most of a pixel.
function drawTint(parts, top, tall) {
  pen.globalAlpha = 0.1;
  STATES.slice(1).forEach((name, state) => {
    pen.fillStyle = colours[name];
    for (let i = 0, count = parts[state].length; i < count; i++) {
      const first = i;
      while (i < count && parts[state][i] > 0.5) i++;
      if (i > first) pen.fillRect(GUTTER + first, top, i - first, tall);
    }
  });
  pen.globalAlpha = 1;
}
