/* SPDX-License-Identifier: MIT */
// The axes of charts, linear and logarithmic, and their labels.

const threeDigits = value => value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 1 ? value.toFixed(2)
  : value.toFixed(3);

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

/** The bounds of the values, rounded outwards to 1, 2 or 5 times a power of ten. */
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

/** Adds buttons next to the caption, each with its text, title and action. */
function addButtons(figure, label, buttons) {
  const group = document.createElement("span");
  group.className = "scale";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", label);
  for (const [textContent, title, onclick] of buttons)
    group.append(Object.assign(document.createElement("button"), { type: "button", textContent, title, onclick }));
  figure.querySelector("figcaption").append(group);
  return [...group.children];
}

function scaleSwitch(figure, redraw) {
  const state = { isLog: true }, names = ["logarithmic", "linear"];
  const show = () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", state.isLog === (i === 0)));
  const choose = name => { state.isLog = name === "logarithmic"; show(); redraw(); };
  const buttons = addButtons(figure, "scale of the response time", names.map(name => [name, "", () => choose(name)]));
  show();
  return state;
}
