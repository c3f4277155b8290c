/* SPDX-License-Identifier: MIT */
// Formats numbers, durations and times.

const number = value => Math.round(value).toLocaleString("en");
const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

// Formats a duration in a suitable unit, with four digits if it is at least a microsecond.
function duration(ns) {
  const size = Math.abs(ns);
  const [divisor, unit] = size < 1e3 ? [1, "ns"] : size < 1e6 ? [1e3, "µs"] : size < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  const digits = size < 1e3 ? 0 : size < 10 * divisor ? 3 : size < 100 * divisor ? 2 : 1;
  return (ns / divisor).toFixed(digits) + " " + unit;
}

// Formats a time since the start, with the precision that the step between ticks requires.
function timeText(ns, step) {
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / 1e9) - 1e-9))), seconds = ns / 1e9;
  if (seconds < 60) return (ns === 0 ? "0" : seconds.toFixed(digits)) + " s";
  // Round the whole time, because rounding only the seconds would show 119.96 s as 1:60.0.
  const [whole, rest] = seconds.toFixed(digits).split("."), two = number => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  return (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(whole % 60) + (rest ? "." + rest : "");
}

// The smallest step of 1, 2 or 5 times a power of ten that is at least `rough`.
function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-9)));
  return [1, 2, 5, 10].map(one => one * power).find(step => step >= rough);
}
// The step of ticks that are at least `apart` pixels apart.
const stepFor = (range, pixels, apart) => niceStep(range / Math.max(pixels / apart, 1));
