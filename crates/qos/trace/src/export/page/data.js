/* SPDX-License-Identifier: MIT */
// The data of a trace's page, and its time axis.

const data = JSON.parse(element("data").textContent);
const LANE = 46, LABEL = 150;
const timeline = new Timeline({ begin: 0, end: data.span_ns, min: 2000, left: LABEL, changed: ask });

function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}
const floats = text => new Float64Array(bytes(text).buffer), integers = text => new Uint32Array(bytes(text).buffer);
