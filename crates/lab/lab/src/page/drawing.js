/* SPDX-License-Identifier: MIT */
// An SVG drawing: parts are collected, then added to the page together with their tooltips.

const escapeText = words => words.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

class Drawing {
  constructor(holder, height) {
    Object.assign(this, { holder, width: Math.max(holder.clientWidth, 320), height, parts: [] });
  }

  add(part) { this.parts.push(part); }
  text(x, y, anchor, words, kind = "soft") {
    this.add(`<text x="${x}" y="${y}" text-anchor="${anchor}" class="${kind}">${escapeText(words)}</text>`);
  }
  line(x1, y1, x2, y2) {
    this.add(`<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="var(--line)"/>`);
  }
  // Values along the bottom, and their label in the middle.
  ticks(values, at, bottom, middle, label) {
    for (const value of values) this.text(at(value), bottom + 17, "middle", trim(value));
    this.text(middle, bottom + 37, "middle", label);
  }
  // Parts with a tooltip.
  group(tip, parts) { this.add(`<g data-tip="${escapeText(tip)}">${parts}</g>`); }

  show(kind, label, below = "") {
    const { holder, width, height, parts } = this;
    holder.innerHTML = `<svg class="${kind}" viewBox="0 0 ${width} ${height}" role="img" ` +
      `aria-label="${escapeText(label)}">${parts.join("")}</svg>${below}`;
    for (const group of holder.querySelectorAll("g[data-tip]")) {
      group.onmousemove = event => showTip(event, group.dataset.tip);
      group.onmouseleave = hideTip;
    }
  }
}
