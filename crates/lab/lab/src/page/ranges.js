/* SPDX-License-Identifier: MIT */
// A bar for each case, from the median to the 99th percentile.

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
  const row = 22, gap = 14, foot = 48, narrow = holder.clientWidth < 640;
  const rows = chart.groups.reduce((sum, group) => sum + group.ranges.length, 0);
  const height = rows * row + chart.groups.length * (gap + (narrow ? 18 : 0)) + foot;
  const drawing = new Drawing(holder, height), left = narrow ? 84 : 250, right = drawing.width - 14;
  const values = chart.groups.flatMap(group => group.ranges.flatMap(r => [r.p50, r.mean, r.p99, r.worst]));
  const x = axis(...niceBounds(values), left, right, isLog), end = height - foot + 4;
  for (const tick of x.ticks) drawing.line(x.at(tick), 4, x.at(tick), end);
  drawing.ticks(x.ticks, x.at, end, (left + right) / 2, chart.x_label);
  let y = 4;
  for (const group of chart.groups) {
    y += gap / 2;
    if (narrow) { y += 18; drawing.text(0, y - 5, "start", group.name, ""); }
    else drawing.text(0, y + row * group.ranges.length / 2 + 4, "start", group.name, "");
    for (const range of group.ranges) {
      const middle = y + row / 2, fill = `var(--${range.case})`;
      drawing.text(left - 10, middle + 4, "end", range.case);
      const title = `${range.case}: median ${threeDigits(range.p50)}, mean ${threeDigits(range.mean)}, ` +
        `99th percentile ${threeDigits(range.p99)}, worst ${threeDigits(range.worst)} ms`;
      const length = Math.max(x.at(range.p99) - x.at(range.p50), 2);
      drawing.group(title, `<rect x="${left}" y="${y}" width="${right - left}" height="${row}" fill="transparent"/>` +
        `<line x1="${x.at(range.p99)}" x2="${x.at(range.worst)}" y1="${middle}" y2="${middle}" stroke="${fill}" ` +
        `stroke-opacity="0.4"/>` +
        `<rect x="${x.at(range.p50)}" y="${middle - 4}" width="${length}" height="8" rx="2" fill="${fill}"/>` +
        `<line x1="${x.at(range.worst)}" x2="${x.at(range.worst)}" y1="${middle - 5}" y2="${middle + 5}" ` +
        `stroke="${fill}" stroke-width="2"/>` +
        `<circle cx="${x.at(range.mean)}" cy="${middle}" r="5" fill="var(--paper)" stroke="${fill}" ` +
        `stroke-width="2.5"/>`);
      y += row;
    }
    y += gap / 2;
  }
  drawing.show("ranges", chart.title);
}
