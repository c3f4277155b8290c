/* SPDX-License-Identifier: MIT */
// The lanes of processors above those of the clients: the thread that ran, interrupts and wake-ups.

const PROCESSOR = 38;
const { threads, interrupts: interruptNames } = data;
const processors = data.processors.map(one => {
  const [begins, ends] = one.runs.map(floats), ran = integers(one.threads);
  const of = owner => {
    const own = times => times.filter((_, i) => threads[ran[i]].owner === owner);
    return intervals([own(begins), own(ends)]);
  };
  // Hard interrupts can interrupt soft ones, so they are separate: searches need intervals that do not overlap.
  const interrupts = one.interrupts.map(({ begins, ends, names }) => ({ ...intervals([begins, ends].map(floats)), named: integers(names) }));
  return { name: "processor " + one.number, runs: { begins, ends }, ran, server: of("server"), client: of("client"),
    other: of("other"), interrupts, wakeups: floats(one.wakeups), woken: integers(one.woken) };
});
data.processors = null;
// The top of the first client's lane.
const CLIENTS = TOP + PROCESSOR * processors.length;

function drawProcessor(one, i) {
  const top = TOP + i * PROCESSOR;
  drawIntervals(one.other, top + 10, 16, colours.line);
  drawIntervals(one.client, top + 10, 16, colours.burst);
  drawIntervals(one.server, top + 10, 16, colours.served);
  for (const some of one.interrupts) drawIntervals(some, top + 2, 6, colours.interrupt);
  drawMoments(one.wakeups, top + 28, colours.wakeup);
  pen.fillStyle = colours.line; pen.fillRect(0, top + PROCESSOR - 1, width, 1);
  const { begins, ends } = one.runs, first = lower(ends, timeline.from), last = lower(begins, timeline.to);
  if (last - first > width / 10) return;
  pen.textAlign = "left";
  for (let k = first; k < last; k++) {
    const left = Math.max(x(begins[k]), LABEL), room = Math.min(x(ends[k]), width) - left - 6, { name, owner } = threads[one.ran[k]];
    if (pen.measureText(name).width > room) continue;
    pen.fillStyle = owner === "server" ? colours.paper : colours.ink; pen.fillText(name, left + 3, top + 18.5);
  }
}
function drawProcessorName({ name }, i) {
  pen.textAlign = "left"; pen.fillStyle = colours.ink; pen.fillText(name, 8, TOP + i * PROCESSOR + PROCESSOR / 2);
}

function aboutProcessor(one, time) {
  const near = timeAt(2) - timeAt(0), lines = [one.name, timeText(time, timeline.length / 1000)];
  const run = under(one.runs, time, near / 4), wakeup = lower(one.wakeups, time - near);
  const length = ({ begins, ends }, k) => duration(ends[k] - begins[k]);
  lines.push(run === null ? "idle" : `${threads[one.ran[run]].name} for ${length(one.runs, run)}`);
  for (const some of one.interrupts) {
    const interrupt = under(some, time, near);
    if (interrupt !== null) lines.push(`interrupt ${interruptNames[some.named[interrupt]]}, ${length(some, interrupt)}`);
  }
  if (one.wakeups[wakeup] <= time + near) lines.push("wakes " + threads[one.woken[wakeup]].name);
  return lines.join("\n");
}
