// Draws the charts of the page from the data it carries. Scatters are canvases (thousands of points), ranges are SVG.

const charts = JSON.parse(element("charts").textContent);
const threeDigits = value => value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 1 ? value.toFixed(2)
  : value.toFixed(3);
const redraws = [];

/** An axis from data to pixels: `at(value)`, and the values to label. */
function axis(min, max, from, to, isLog) {
  if (!isLog) {
    const step = niceStep(max / 5);
    const end = Math.ceil(max / step) * step;
    const ticks = [];
    for (let i = 0; i * step <= end * 1.0001; i++) ticks.push(i * step);
    return { at: v => from + (to - from) * v / end, ticks };
  }
  const low = Math.log10(min), high = Math.log10(max);
  const ticks = [];
  for (let power = Math.floor(low); power <= Math.ceil(high); power++)
    for (const part of Math.abs(to - from) / (high - low) > 110 ? [1, 2, 5] : [1]) {
      const value = part * 10 ** power;
      if (value >= min * 0.999 && value <= max * 1.001) ticks.push(value);
    }
  return { at: v => from + (to - from) * (Math.log10(Math.max(v, min)) - low) / (high - low), ticks };
}

/** From the next 1, 2 or 5 below to the next above. */
function niceBounds(values) {
  const steps = [1, 2, 5, 10];
  const positive = values.filter(v => v > 0);
  const min = positive.reduce((a, b) => Math.min(a, b), Infinity);
  const max = positive.reduce((a, b) => Math.max(a, b), 0);
  const power = value => 10 ** Math.floor(Math.log10(value));
  const below = [...steps].reverse().find(s => s * power(min) <= min) * power(min);
  const above = steps.find(s => s * power(max) >= max) * power(max);
  return [below, above];
}

const trim = value => String(+value.toPrecision(6));

function scaleSwitch(figure, redraw) {
  const group = document.createElement("span");
  group.className = "scale";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "scale of the response time");
  const state = { isLog: true };
  for (const [text, isLog] of [["logarithmic", true], ["linear", false]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-pressed", isLog);
    button.onclick = () => {
      state.isLog = isLog;
      for (const other of group.children) other.setAttribute("aria-pressed", other === button);
      redraw();
    };
    group.append(button);
  }
  figure.querySelector("figcaption").append(group);
  return state;
}

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
    const box = document.createElement("div");
    box.className = "panel";
    const name = document.createElement("div");
    name.className = "name";
    const [head, ...rest] = panel.name.split(": ");
    const dot = document.createElement("i");
    dot.className = "dot " + panel.case;
    const bold = document.createElement("b");
    bold.textContent = head;
    name.append(dot, bold, document.createElement("br"), rest.join(": "));
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", panel.name + ", " + chart.y_label + "; the table has the figures");
    box.append(name, canvas);
    panels.append(box);
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
    pen.beginPath();
    pen.moveTo(left, at);
    pen.lineTo(right, at);
    pen.stroke();
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

function drawMean(pen, at, left, right, top, text) {
  pen.strokeStyle = colour("ink");
  pen.setLineDash([5, 4]);
  pen.beginPath();
  pen.moveTo(left, at);
  pen.lineTo(right, at);
  pen.stroke();
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

function ranges(figure, chart) {
  const legend = document.createElement("span");
  legend.className = "legend";
  legend.textContent = "bar: median to 99th percentile; dot: mean; tick: worst";
  const holder = document.createElement("div");
  figure.append(holder);
  const redraw = () => drawRanges(holder, chart, state.isLog);
  const state = scaleSwitch(figure, redraw);
  figure.querySelector("figcaption").append(legend);
  redraws.push(redraw);
}

function drawRanges(holder, chart, isLog) {
  const width = Math.max(holder.clientWidth, 320), row = 22, gap = 14, foot = 44;
  const narrow = width < 640;
  const left = narrow ? 84 : 250, right = width - 14;
  const rows = chart.groups.reduce((sum, group) => sum + group.ranges.length, 0);
  const height = rows * row + chart.groups.length * (gap + (narrow ? 18 : 0)) + foot;
  const values = chart.groups.flatMap(group => group.ranges.flatMap(r => [r.p50, r.mean, r.p99, r.worst]));
  const [min, max] = niceBounds(values);
  const x = axis(min, max, left, right, isLog);
  const parts = [];
  const text = (at, y, anchor, words, kind = "") =>
    parts.push(`<text x="${at}" y="${y}" text-anchor="${anchor}" class="${kind}">${escapeText(words)}</text>`);
  const end = height - foot + 4;
  for (const tick of x.ticks) {
    parts.push(`<line x1="${x.at(tick)}" x2="${x.at(tick)}" y1="4" y2="${end}" stroke="var(--line)"/>`);
    text(x.at(tick), end + 16, "middle", trim(tick), "soft");
  }
  text((left + right) / 2, end + 34, "middle", chart.x_label, "soft");
  let y = 4;
  for (const group of chart.groups) {
    y += gap / 2;
    if (narrow) { y += 18; text(0, y - 5, "start", group.name); }
    else text(0, y + row * group.ranges.length / 2 + 4, "start", group.name);
    for (const range of group.ranges) {
      const middle = y + row / 2, fill = `var(--${range.case})`;
      text(left - 10, middle + 4, "end", range.case, "soft");
      const title = `${range.case}: median ${threeDigits(range.p50)}, mean ${threeDigits(range.mean)}, ` +
        `99th percentile ${threeDigits(range.p99)}, worst ${threeDigits(range.worst)} ms`;
      const length = Math.max(x.at(range.p99) - x.at(range.p50), 2);
      parts.push(`<g data-tip="${escapeText(title)}">` +
        `<rect x="${left}" y="${y}" width="${right - left}" height="${row}" fill="transparent"/>` +
        `<line x1="${x.at(range.p99)}" x2="${x.at(range.worst)}" y1="${middle}" y2="${middle}" stroke="${fill}" ` +
        `stroke-opacity="0.4"/>` +
        `<rect x="${x.at(range.p50)}" y="${middle - 4}" width="${length}" height="8" rx="2" fill="${fill}"/>` +
        `<line x1="${x.at(range.worst)}" x2="${x.at(range.worst)}" y1="${middle - 5}" y2="${middle + 5}" ` +
        `stroke="${fill}" stroke-width="2"/>` +
        `<circle cx="${x.at(range.mean)}" cy="${middle}" r="5" fill="var(--paper)" stroke="${fill}" ` +
        `stroke-width="2.5"/></g>`);
      y += row;
    }
    y += gap / 2;
  }
  holder.innerHTML = `<svg class="ranges" viewBox="0 0 ${width} ${height}" role="img" ` +
    `aria-label="${escapeText(chart.title)}">${parts.join("")}</svg>`;
  for (const group of holder.querySelectorAll("g[data-tip]")) {
    group.onmousemove = event => showTip(event, group.dataset.tip);
    group.onmouseleave = hideTip;
  }
}

/** Colour, dashes and mark of a line; without colour the last two tell them apart. */
const STYLES = {
  idle: ["idle", "2 4", "circle"], paper: ["published", "8 4", "cross"], classic: ["classic", "", "square"],
  smart: ["smart", "6 3", "triangle"], stock: ["stock", "", "circle"], fair: ["fair", "3 3", "diamond"],
  cbs: ["cbs", "", "cross"], hard: ["cbs", "6 3", "square"],
  both: ["both", "8 3 2 3", "triangle"],
};
/** With more points than these a line has no marks. */
const MAX_MARKS = 60;

function lines(figure, chart) {
  const holder = document.createElement("div");
  figure.append(holder);
  redraws.push(() => drawLines(holder, chart));
}

function mark(kind, x, y, colour) {
  const shapes = {
    circle: `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`, square: `M${x - 4} ${y - 4}h8v8h-8z`,
    triangle: `M${x} ${y - 5}l5 9h-10z`, diamond: `M${x} ${y - 5}l5 5l-5 5l-5 -5z`,
    cross: `M${x - 4} ${y - 4}l8 8M${x + 4} ${y - 4}l-8 8`,
  };
  return `<path d="${shapes[kind]}" fill="var(--paper)" stroke="${colour}" stroke-width="2"/>`;
}

function drawLines(holder, chart) {
  const width = Math.max(holder.clientWidth, 320), height = 360, left = 62, right = width - 14, top = 26;
  const bottom = height - 46;
  const tops = chart.lines.flatMap(l => l.points.map((p, i) => p[1] + (l.deviations[i] || 0)));
  const [min, max] = chart.log_y ? niceBounds(tops.concat(chart.lines.flatMap(l => l.points.map(p => p[1]))))
    : [0, Math.max(...tops, 1e-9)];
  const y = axis(min, max, bottom, top, chart.log_y);
  const places = chart.lines.flatMap(l => l.points.map(p => p[0]));
  const farthest = Math.max(...places, 1e-9);
  const x = axis(chart.log_x ? Math.min(...places, farthest / 10) : 0, farthest, left, right, chart.log_x);
  const parts = [];
  const text = (at, down, anchor, words, kind = "soft") =>
    parts.push(`<text x="${at}" y="${down}" text-anchor="${anchor}" class="${kind}">${escapeText(words)}</text>`);
  for (const tick of y.ticks) {
    parts.push(`<line x1="${left}" x2="${right}" y1="${y.at(tick)}" y2="${y.at(tick)}" stroke="var(--line)"/>`);
    text(left - 8, y.at(tick) + 4, "end", trim(tick));
  }
  for (const tick of x.ticks) text(x.at(tick), bottom + 18, "middle", trim(tick));
  text((left + right) / 2, bottom + 38, "middle", chart.x_label);
  text(2, 14, "start", chart.y_label);
  for (const line of chart.lines) drawLine(parts, line, x, y, chart.log_y);
  const legend = chart.lines.map(line => {
    const [colour, dashes, kind] = STYLES[line.case] || STYLES.idle;
    const stroke = `var(--${colour})`;
    return `<span><svg width="44" height="14" aria-hidden="true"><line x1="2" x2="42" y1="7" y2="7" stroke="${stroke}" ` +
      `stroke-width="2" stroke-dasharray="${dashes}"/>${mark(kind, 22, 7, stroke)}</svg> ${escapeText(line.name)}</span>`;
  });
  holder.innerHTML = `<svg class="lines" viewBox="0 0 ${width} ${height}" role="img" ` +
    `aria-label="${escapeText(chart.title)}; the tables have the figures">${parts.join("")}</svg>` +
    `<div class="keys">${legend.join("")}</div>`;
  for (const group of holder.querySelectorAll("g[data-tip]")) {
    group.onmousemove = event => showTip(event, group.dataset.tip);
    group.onmouseleave = hideTip;
  }
}

function drawLine(parts, line, x, y, isLog) {
  const [name, dashes, kind] = STYLES[line.case] || STYLES.idle;
  const colour = `var(--${name})`;
  const shown = line.points.map((point, i) => [...point, line.deviations[i]]).filter(p => !isLog || p[1] > 0);
  const path = shown.map(p => `${x.at(p[0]).toFixed(1)} ${y.at(p[1]).toFixed(1)}`).join("L");
  if (path) parts.push(`<path d="M${path}" fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${dashes}"/>`);
  if (shown.length > MAX_MARKS) return;
  for (const [at, value, deviation] of shown) {
    const middle = x.at(at);
    if (deviation) {
      const low = y.at(Math.max(value - deviation, isLog ? value / 100 : 0)), high = y.at(value + deviation);
      parts.push(`<path d="M${middle} ${low}V${high}M${middle - 4} ${low}h8M${middle - 4} ${high}h8" ` +
        `stroke="${colour}" fill="none"/>`);
    }
    const words = `${line.name}: ${threeDigits(value)}${deviation ? ` (deviation ${threeDigits(deviation)})` : ""} at ${trim(at)}`;
    parts.push(`<g data-tip="${escapeText(words)}">${mark(kind, middle, y.at(value), colour)}</g>`);
  }
}

const escapeText = words => words.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const chart = charts[figure.dataset.chart];
  if (chart.Scatter) scatter(figure, chart.Scatter);
  else if (chart.Lines) lines(figure, chart.Lines);
  else if (chart.Lanes) lanes(figure, chart.Lanes);
  else ranges(figure, chart.Ranges);
}
const redrawAll = () => redraws.forEach(redraw => redraw());
redrawAll();
addEventListener("resize", redrawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
document.documentElement.dataset.ready = "true";
