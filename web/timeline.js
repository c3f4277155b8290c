/* SPDX-License-Identifier: MIT */
// The time axis of a page: the visible range, its mapping to pixels, and the markers A and B. Only `show` and `moveTo`
// change the range, which stays between `begin` and `end` and is at least `min` long.

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

class Timeline {
  // `left` is the pixel where time starts; the page sets `right`. `changed` is called when the page must be redrawn.
  constructor({ begin, end, min, left, changed }) {
    Object.assign(this, { begin, end: Math.max(end, begin + min), min, left, right: left + 1, changed });
    this.from = this.begin;
    this.to = this.end;
    this.a = this.b = null;
  }

  get length() { return this.to - this.from; }
  get middle() { return (this.from + this.to) / 2; }
  x(time) { return this.left + (time - this.from) / this.length * (this.right - this.left); }
  at(px) { return this.from + (px - this.left) / (this.right - this.left) * this.length; }

  show(from, to) {
    const length = clamp(to - from, this.min, this.end - this.begin);
    this.from = clamp((from + to - length) / 2, this.begin, this.end - length);
    this.to = this.from + length;
    this.changed();
  }
  showAll() { this.show(this.begin, this.end); }
  // Moves the range to `from` without changing its length.
  moveTo(from) {
    const { length } = this;
    this.from = clamp(from, this.begin, this.end - length);
    this.to = this.from + length;
    this.changed();
  }
  // Moves by a fraction of the visible range.
  pan(part) { this.moveTo(this.from + part * this.length); }
  // Makes the range `factor` times as long. The time `at` stays at its pixel unless the limits prevent that.
  zoom(factor, at = this.middle) {
    const part = (at - this.from) / this.length, length = clamp(this.length * factor, this.min, this.end - this.begin);
    this.show(at - part * length, at - part * length + length);
  }

  mark(marks) { Object.assign(this, marks); this.changed(); }
  clear() { this.mark({ a: null, b: null }); }
  get isMarked() { return this.a !== null && this.b !== null; }
  // The range for statistics: between the markers if both are set, otherwise the visible range.
  get span() { return this.isMarked ? [Math.min(this.a, this.b), Math.max(this.a, this.b)] : [this.from, this.to]; }
  showMarked() { if (this.isMarked) this.show(...this.span); }

  get step() { return stepFor(this.length, this.right - this.left, 110); }
  ticks() {
    const { step } = this, first = Math.ceil(this.from / step), count = Math.floor(this.to / step) - first + 1;
    return Array.from({ length: Math.max(count, 0) }, (_, i) => (first + i) * step);
  }

  // The wheel zooms at the pointer. Horizontal scrolling, or scrolling with Shift, moves the range.
  wheel(event, px) {
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / 800);
    else this.zoom(Math.exp(clamp(event.deltaY / 300, -1, 1)), this.at(Math.max(px, this.left)));
  }
  // Starts a drag. The returned function moves the range along with the pointer.
  drag() {
    const { from } = this;
    return pixels => this.moveTo(from - pixels / (this.right - this.left) * this.length);
  }
  // Actions of keys. Markers are set at the time that `pointed` returns.
  keys(pointed) {
    const page = event => event.shiftKey ? 0.9 : 0.15;
    return {
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6), 0: () => this.showAll(),
      ArrowLeft: event => this.pan(-page(event)), ArrowRight: event => this.pan(page(event)),
      PageUp: () => this.pan(-0.9), PageDown: () => this.pan(0.9),
      Home: () => this.moveTo(this.begin), End: () => this.moveTo(this.end), z: () => this.showMarked(),
      a: () => this.mark({ a: pointed() }), b: () => this.mark({ b: pointed() }), Escape: () => this.clear(),
    };
  }
}
