/* SPDX-License-Identifier: MIT */
// Draws the canvas: entry point, and parts that panels and lanes share.
function draw() {
  prepare(Math.max(stage.clientWidth, GUTTER + 60), Math.max(stage.clientHeight, 120));
  if (chosen()) drawPanels(); else drawLanes();
  drawTimes(); drawMarkers();
  describeSpan();
}

// Fraction of each pixel's time that a direction spent in each state except idle. The cost depends only on the width.
function statesByPixel(track) {
  const count = Math.ceil(width - GUTTER), names = STATES.slice(1), parts = names.map(() => new Float32Array(count));
  for (let i = 0; i < count; i++) {
    const from = timeAt(GUTTER + i), to = timeAt(GUTTER + i + 1);
    names.forEach((name, state) => { parts[state][i] = covered(track.states[name], from, to) / (to - from); });
  }
  return parts;
}
// Draws a strip in which each pixel is filled in proportion to the states.
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
// Tints the background with the state that fills more than half of a pixel.
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
