/* SPDX-License-Identifier: MIT */
// Elements, colours and the tooltip.

const element = id => document.getElementById(id);

// A colour of the page's style, light or dark.
const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// A table row of texts or nodes.
function row(cells, kind = "td") {
  const out = document.createElement("tr");
  for (const text of cells) {
    const cell = out.appendChild(document.createElement(kind));
    if (text instanceof Node) cell.append(text);
    else { cell.textContent = text; cell.title = text; }
  }
  return out;
}

// Shows a tooltip next to the pointer, inside the window, or hides it if there is no text.
function showTip(event, text) {
  const tip = element("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = Math.max(Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8), 0) + "px";
  tip.style.top = Math.max(Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8), 0) + "px";
}
const hideTip = () => { element("tip").hidden = true; };
