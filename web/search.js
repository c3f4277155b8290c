/* SPDX-License-Identifier: MIT */
// Searches sorted times and intervals, so that drawing a pixel takes two binary searches, whatever the number of
// records.

// Times are usually sorted. If not, searches use the maximum of all earlier times and the minimum of all later times.
function sorted(times) {
  let isSorted = true;
  for (let i = 1; i < times.length && isSorted; i++) isSorted = times[i] >= times[i - 1];
  if (isSorted) return { highest: times, lowest: times };
  const highest = times.slice(), lowest = times.slice();
  for (let i = 1; i < times.length; i++) if (highest[i] < highest[i - 1]) highest[i] = highest[i - 1];
  for (let i = times.length - 2; i >= 0; i--) if (lowest[i] > lowest[i + 1]) lowest[i] = lowest[i + 1];
  return { highest, lowest };
}

// Index of the first element that is at least `value`.
function lower(array, value) {
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
// Index of the first element that is greater than `value`.
function upper(array, value) {
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] <= value) low = middle + 1; else high = middle;
  }
  return low;
}

// For each index, the sum of all elements before it.
const sums = values => {
  const out = new Float64Array(values.length + 1);
  for (let i = 0; i < values.length; i++) out[i + 1] = out[i] + values[i];
  return out;
};

// Intervals by begins and ends, with the sums that `covered` needs.
function intervals([begins, ends]) {
  return { begins, ends, sums: sums(ends.map((end, i) => end - begins[i])) };
}

// The time from `from` to `to` that the intervals cover: the sum of their lengths, minus the parts outside that range.
function covered({ begins, ends, sums }, from, to) {
  const first = upper(ends, from), last = lower(begins, to);
  if (first >= last) return 0;
  return sums[last] - sums[first] - Math.max(0, from - begins[first]) - Math.max(0, ends[last - 1] - to);
}
