/* SPDX-License-Identifier: MIT */
// Draws the charts of the page from the data it carries.

const charts = JSON.parse(element("charts").textContent);
const redraws = [];

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
