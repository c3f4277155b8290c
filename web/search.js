/* SPDX-License-Identifier: MIT */
// Searching in times and in intervals of time, which are arrays of numbers in order: what is drawn for a pixel costs two
// binary searches, however many records there are.

// Times are nearly in order. Where they are not, the maximum so far and the minimum to come bound the search.
function sorted(times) {
  let isSorted = true;
  for (let i = 1; i < times.length && isSorted; i++) isSorted = times[i] >= times[i - 1];
  if (isSorted) return { highest: times, lowest: times };
  const highest = times.slice(), lowest = times.slice();
  for (let i = 1; i < times.length; i++) if (highest[i] < highest[i - 1]) highest[i] = highest[i - 1];
  for (let i = times.length - 2; i >= 0; i--) if (lowest[i] > lowest[i + 1]) lowest[i] = lowest[i + 1];
  return { highest, lowest };
}

// Index of the first element that is not less than a value.
function lower(array, value) {
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
// Index of the first element that is greater.
function upper(array, value) {
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] <= value) low = middle + 1; else high = middle;
  }
  return low;
}

// At each place the sum of what is before it.
const sums = values => {
  const out = new Float64Array(values.length + 1);
  for (let i = 0; i < values.length; i++) out[i + 1] = out[i] + values[i];
  return out;
};

// Intervals by their begins and ends, with what `covered` needs.
function intervals([begins, ends]) {
  return { begins, ends, sums: sums(ends.map((end, i) => end - begins[i])) };
}

// How much of a time the intervals cover: sums, less what lies outside at both ends.
function covered({ begins, ends, sums }, from, to) {
  const first = upper(ends, from), last = lower(begins, to);
  if (first >= last) return 0;
  return sums[last] - sums[first] - Math.max(0, from - begins[first]) - Math.max(0, ends[last - 1] - to);
}
