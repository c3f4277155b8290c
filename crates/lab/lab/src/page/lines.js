/* SPDX-License-Identifier: MIT */
// Lines over common axes, as in the papers, with marks and deviations.

/** Colour, dashes and mark of a line; the last two distinguish lines without colour. */
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
  const drawing = new Drawing(holder, 360), left = 62, right = drawing.width - 14, top = 26;
  const bottom = drawing.height - 46;
  const tops = chart.lines.flatMap(l => l.points.map((p, i) => p[1] + (l.deviations[i] || 0)));
  const [min, max] = chart.log_y ? niceBounds(tops.concat(chart.lines.flatMap(l => l.points.map(p => p[1]))))
    : [0, Math.max(...tops, 1e-9)];
  const y = axis(min, max, bottom, top, chart.log_y);
  const places = chart.lines.flatMap(l => l.points.map(p => p[0]));
  const farthest = Math.max(...places, 1e-9);
  const x = axis(chart.log_x ? Math.min(...places, farthest / 10) : 0, farthest, left, right, chart.log_x);
  for (const tick of y.ticks) {
    drawing.line(left, y.at(tick), right, y.at(tick));
    drawing.text(left - 8, y.at(tick) + 4, "end", trim(tick));
  }
  drawing.ticks(x.ticks, x.at, bottom, (left + right) / 2, chart.x_label);
  drawing.text(2, 14, "start", chart.y_label);
  for (const line of chart.lines) drawLine(drawing, line, x, y, chart.log_y);
  const legend = chart.lines.map(line => {
    const [colour, dashes, kind] = STYLES[line.case] || STYLES.idle;
    const stroke = `var(--${colour})`;
    return `<span><svg width="44" height="14" aria-hidden="true"><line x1="2" x2="42" y1="7" y2="7" stroke="${stroke}" ` +
      `stroke-width="2" stroke-dasharray="${dashes}"/>${mark(kind, 22, 7, stroke)}</svg> ${escapeText(line.name)}</span>`;
  });
  drawing.show("lines", chart.title + "; the tables have the figures", `<div class="keys">${legend.join("")}</div>`);
}

function drawLine(drawing, line, x, y, isLog) {
  const [name, dashes, kind] = STYLES[line.case] || STYLES.idle;
  const colour = `var(--${name})`;
  const shown = line.points.map((point, i) => [...point, line.deviations[i]]).filter(p => !isLog || p[1] > 0);
  const path = shown.map(p => `${x.at(p[0]).toFixed(1)} ${y.at(p[1]).toFixed(1)}`).join("L");
  if (path) drawing.add(`<path d="M${path}" fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${dashes}"/>`);
  if (line.unmarked || shown.length > MAX_MARKS) return;
  for (const [at, value, deviation] of shown) {
    const middle = x.at(at);
    if (deviation) {
      const low = y.at(Math.max(value - deviation, isLog ? value / 100 : 0)), high = y.at(value + deviation);
      drawing.add(`<path d="M${middle} ${low}V${high}M${middle - 4} ${low}h8M${middle - 4} ${high}h8" ` +
        `stroke="${colour}" fill="none"/>`);
    }
    const words = `${line.name}: ${threeDigits(value)}${deviation ? ` (deviation ${threeDigits(deviation)})` : ""} at ${trim(at)}`;
    drawing.group(words, mark(kind, middle, y.at(value), colour));
  }
}
