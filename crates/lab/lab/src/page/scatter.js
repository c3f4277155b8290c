/* SPDX-License-Identifier: MIT */
// A panel for each case, with a point for each response. Canvases are used for thousands of points.

function scatter(figure, chart) {
  const panels = document.createElement("div");
  panels.className = "panels";
  figure.append(panels);
  const all = chart.panels.flatMap(panel => panel.points.map(point => point[1]));
  const [min, max] = niceBounds(all);
  const seconds = chart.panels.reduce((longest, panel) => Math.max(longest, ...panel.points.slice(-1).map(p => p[0])), 1);
  const draws = [];
  const redraw = () => draws.forEach(draw => draw());
  const state = scaleSwitch(figure, redraw);
  for (const panel of chart.panels) {
    const [head, ...rest] = panel.name.split(": "), label = `${panel.name}, ${chart.y_label}; the table has the figures`;
    const box = panels.appendChild(document.createElement("div"));
    box.className = "panel";
    box.innerHTML = `<div class="name"><i class="dot ${escapeText(panel.case)}"></i><b>${escapeText(head)}</b><br>` +
      `${escapeText(rest.join(": "))}</div><canvas role="img" aria-label="${escapeText(label)}"></canvas>`;
    const canvas = box.querySelector("canvas");
    const mean = panel.points.reduce((sum, point) => sum + point[1], 0) / Math.max(panel.points.length, 1);
    let near = null, place = null;
    const draw = () => {
      place = drawPanel(canvas, panel, chart, { min, max, seconds, mean, near, isLog: state.isLog });
    };
    draws.push(draw);
    canvas.onmousemove = event => {
      const x = event.offsetX, y = event.offsetY;
      let best = 400;
      near = null;
      for (const point of panel.points) {
        const distance = (place.x(point[0]) - x) ** 2 + (place.y(point[1]) - y) ** 2;
        if (distance < best) { best = distance; near = point; }
      }
      draw();
      if (near) showTip(event, `${threeDigits(near[1])} ms at ${near[0].toFixed(2)} s`);
      else hideTip();
    };
    canvas.onmouseleave = () => { near = null; hideTip(); draw(); };
  }
  redraws.push(redraw);
}

function drawPanel(canvas, panel, chart, view) {
  const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  const left = 38, right = width - 8, top = 24, bottom = height - 36;
  const y = axis(view.min, view.max, bottom, top, view.isLog);
  const x = axis(0, view.seconds, left, right, false);
  const toX = value => left + (right - left) * value / view.seconds;
  pen.fillStyle = colour("soft");
  pen.strokeStyle = colour("line");
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const tick of y.ticks) {
    const at = Math.round(y.at(tick)) + 0.5;
    drawLevel(pen, left, right, at);
    pen.fillText(trim(tick), left - 6, at);
  }
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const tick of x.ticks) if (tick <= view.seconds * 1.01) pen.fillText(trim(tick), toX(tick), bottom + 6);
  pen.fillText(chart.x_label, (left + right) / 2, bottom + 21);
  pen.textAlign = "left";
  pen.fillText(chart.y_label, 0, 2);
  pen.fillStyle = colour(panel.case);
  pen.globalAlpha = 0.55;
  for (const [time, value] of panel.points) {
    pen.beginPath();
    pen.arc(toX(time), y.at(value), 1.7, 0, 7);
    pen.fill();
  }
  pen.globalAlpha = 1;
  drawMean(pen, y.at(view.mean), left, right, top, `mean ${threeDigits(view.mean)}`);
  if (view.near) {
    pen.strokeStyle = colour("ink");
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(toX(view.near[0]), y.at(view.near[1]), 5, 0, 7);
    pen.stroke();
    pen.lineWidth = 1;
  }
  return { x: toX, y: y.at };
}

function drawLevel(pen, left, right, at) {
  pen.beginPath();
  pen.moveTo(left, at);
  pen.lineTo(right, at);
  pen.stroke();
}

function drawMean(pen, at, left, right, top, text) {
  pen.strokeStyle = colour("ink");
  pen.setLineDash([5, 4]);
  drawLevel(pen, left, right, at);
  pen.setLineDash([]);
  pen.textAlign = "right";
  pen.textBaseline = "bottom";
  const width = pen.measureText(text).width;
  const base = at - 4 > top + 14 ? at - 4 : at + 18;
  pen.fillStyle = colour("paper");
  pen.globalAlpha = 0.85;
  pen.fillRect(right - width - 6, base - 15, width + 6, 16);
  pen.globalAlpha = 1;
  pen.fillStyle = colour("ink");
  pen.fillText(text, right - 3, base);
}
