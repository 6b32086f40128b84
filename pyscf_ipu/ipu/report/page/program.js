// The program as a tree that can be drawn at any scale without being unrolled.
//
// Every sequence keeps prefix sums: of the durations, to find what is visible by bisection, and of
// the cycles by lane and stage, to sum up any run of steps too narrow for a pixel in one go.

export const LANES = ["compute", "exchange", "sync", "host"];
const NARROWEST_ITERATION = 4; // pixels; narrower ones are drawn as their mean

/** Items that follow each other; `ends[i]` is where item i begins. */
class Sequence {
  constructor(items, slots) {
    this.items = items;
    this.slots = slots;
    this.ends = new Float64Array(items.length + 1);
    this.runs = new Float64Array(items.length + 1);
    this.sums = new Float64Array((items.length + 1) * slots);
    items.forEach((item, i) => {
      this.ends[i + 1] = this.ends[i] + item.duration;
      this.runs[i + 1] = this.runs[i] + item.runs;
      for (let s = 0; s < slots; s += 1) {
        this.sums[(i + 1) * slots + s] = this.sums[i * slots + s] + item.totals[s];
      }
    });
    this.marks = items.flatMap((item, i) => (item.step && item.step.kind === "host" && !item.duration ? [i] : []));
  }

  get duration() { return this.ends[this.items.length]; }

  get steps() { return this.runs[this.items.length]; }

  /** The cycles by slot of items i to j, j not included. */
  totals(i, j) {
    const n = this.slots;
    const found = this.sums.slice(j * n, (j + 1) * n);
    for (let s = 0; s < n; s += 1) found[s] -= this.sums[i * n + s];
    return found;
  }

  /** The first item that ends after `time`. */
  firstAfter(time) {
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle + 1] > time) high = middle; else low = middle + 1;
    }
    return low;
  }
}

/** which: "low" or "high" of the cycles. Returns {root, depth}, depth of the nested loops. */
export function buildProgram({ steps, nodes }, stages, which) {
  const slots = LANES.length * stages.length;
  let depth = 0;
  const leaves = steps.map((step) => {
    const duration = step.overlapped ? 0 : step.cycles[which];
    const totals = new Float64Array(slots);
    const lane = LANES.indexOf(step.kind);
    const stage = Math.max(0, stages.indexOf(step.stage || "other")); // the host is in no stage
    if (lane >= 0) totals[lane * stages.length + stage] = duration;
    return { step, duration, totals, runs: 1, lane, stage };
  });
  const build = (list, level) => {
    depth = Math.max(depth, level);
    return new Sequence(list.map((node) => (typeof node === "number" ? leaves[node] : loop(node, level))), slots);
  };
  const loop = ([count, name, children], level) => {
    const body = build(children, level + 1);
    const totals = body.totals(0, body.items.length).map((x) => x * count);
    return { name, count, body, totals, duration: count * body.duration, runs: count * body.steps };
  };
  return { root: build(nodes, 0), depth };
}

/**
 * Show `painter` what is visible of a sequence that begins at `start`.
 *
 * view     {from, to, scale}: cycles, and pixels per cycle.
 * painter  box(item, time): a step of a pixel or more.
 *          loop(item, time, level), iteration(item, number, time, level): a loop of a pixel or more.
 *          blend(from, to, totals, duration, runs): what is narrower than a pixel, together.
 *          mark(item, time): a step without a duration.
 */
export function visit(sequence, start, view, painter, level = 0) {
  const { items, ends } = sequence;
  let i = sequence.firstAfter(view.from - start);
  while (i < items.length && start + ends[i] < view.to) {
    const time = start + ends[i];
    if (items[i].duration * view.scale >= 1) {
      if (items[i].body) visitLoop(items[i], time, view, painter, level); else painter.box(items[i], time);
      i += 1;
    } else {
      const j = endOfRun(sequence, i, view.scale);
      const length = ends[j] - ends[i];
      if (length > 0) {
        painter.blend(time, time + length, sequence.totals(i, j), length, sequence.runs[j] - sequence.runs[i]);
      }
      i = j;
    }
  }
  visitMarks(sequence, start, view, painter);
}

/** The end of the items from i on that together fill a pixel; an item that fills one ends them. */
function endOfRun(sequence, i, scale) {
  const { items, ends } = sequence;
  const j = Math.min(items.length, sequence.firstAfter(ends[i] + 1 / scale) + 1);
  return j - 1 > i && items[j - 1].duration * scale >= 1 ? j - 1 : Math.max(j, i + 1);
}

function visitLoop(loop, time, view, painter, level) {
  painter.loop(loop, time, level);
  const { duration: period, steps } = loop.body;
  const mean = (from, to, count) => {
    const [a, b] = [Math.max(from, view.from), Math.min(to, view.to)];
    if (b > a) painter.blend(a, b, loop.body.totals(0, loop.body.items.length), period, steps * count);
  };
  if (period * view.scale < NARROWEST_ITERATION) {
    mean(time, time + loop.duration, loop.count);
    return;
  }
  const complete = Math.floor(loop.count);
  const first = Math.max(0, Math.floor((view.from - time) / period));
  const last = Math.min(complete, Math.ceil((view.to - time) / period));
  for (let k = first; k < last; k += 1) {
    painter.iteration(loop, k, time + k * period, level);
    visit(loop.body, time + k * period, view, painter, level + 1);
  }
  // What a mean count has beyond whole turns is a part of a turn, and which one is not known.
  mean(time + complete * period, time + loop.duration, loop.count - complete);
}

/** Marks at least a pixel apart. */
function visitMarks(sequence, start, view, painter) {
  let next = view.from;
  for (const i of sequence.marks) {
    const time = start + sequence.ends[i];
    if (time > view.to) return;
    if (time >= next) {
      painter.mark(sequence.items[i], time);
      next = time + 1 / view.scale;
    }
  }
}
