/* SPDX-License-Identifier: MIT */
// Draws the charts of the page from the data in the page.

const charts = JSON.parse(element("charts").textContent);
const redraws = [];

for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const [[kind, chart]] = Object.entries(charts[figure.dataset.chart]);
  ({ Scatter: scatter, Lines: lines, Lanes: lanes, Ranges: ranges })[kind](figure, chart);
}
const redrawAll = () => redraws.forEach(redraw => redraw());
redrawAll();
addEventListener("resize", redrawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
document.documentElement.dataset.ready = "true";
