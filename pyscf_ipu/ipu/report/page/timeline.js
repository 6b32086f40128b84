// The zoomable timeline: loops, and the lanes of bulk synchronous parallel execution.

import { tickStep } from "./charts.js";
import { COLOURS, dataSize, duration, interval, percent, turns, whole } from "./page.js";
import { LANES } from "./program.js";

export const GUTTER = 84;
const LANE_HEIGHTS = { compute: 64, exchange: 44, sync: 34, host: 24 };
const LOOP_HEIGHT = 18;
const MOST_LOOP_ROWS = 5;
const GAP = 6;
const AXIS = 24;
export const NARROWEST_VIEW = 16; // cycles

/** A tick's text with as many digits as tell it from its neighbours. */
function tickText(value, step, largest) {
  if (value === 0) return "0";
  const [scale, unit] = [[1e9, " G"], [1e6, " M"], [1e3, " k"]].find(([s]) => largest >= s) || [1, ""];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9));
  return `${(value / scale).toFixed(digits)}${unit}`;
}

/** Tops of the rows: loops by level, then lanes; traffic with the host that takes no time of its
    own is marked in the last one. */
export function rowLayout(depth) {
  let y = AXIS;
  const loops = Array.from({ length: Math.min(depth, MOST_LOOP_ROWS) }, () => {
    const top = y;
    y += LOOP_HEIGHT + 2;
    return { top, height: LOOP_HEIGHT };
  });
  if (loops.length) y += GAP;
  const lanes = LANES.map((name) => {
    const row = { name, top: y, height: LANE_HEIGHTS[name] };
    y += row.height + GAP;
    return row;
  });
  return { loops, lanes, marks: { name: "host", top: lanes.at(-1).top, height: 12 }, height: y };
}

/** Draws into a canvas, and keeps what it drew in `hits` for the pointer. */
export class Painter {
  constructor(context, view, layout, colours, stages) {
    Object.assign(this, { context, view, layout, colours, stages, hits: [] });
  }

  x(time) {
    const { from, left, right } = this.view;
    return Math.min(right, Math.max(left, left + (time - from) * this.view.scale));
  }

  box(item, time) {
    const row = this.layout.lanes[item.lane];
    if (!row) return;
    const [x0, x1] = [this.x(time), this.x(time + item.duration)];
    this.fill(x0, row.top, x1 - x0 - (x1 - x0 > 4 ? 1 : 0), row.height, this.stageColour(item.stage));
    this.write(item.step.name, x0, x1, row.top + 15, this.colours.card);
    this.hits.push({ row, x0, x1, time, item });
  }

  blend(from, to, totals, length, runs) {
    const [x0, x1] = [this.x(from), this.x(to)];
    if (x1 <= x0) return;
    this.layout.lanes.forEach((row, lane) => {
      let bottom = row.top + row.height;
      let used = 0;
      this.stages.forEach((_, stage) => {
        const height = (row.height * totals[lane * this.stages.length + stage]) / length;
        if (height > 0) this.fill(x0, bottom - height, x1 - x0, height, this.stageColour(stage));
        bottom -= height;
        used += height;
      });
      if (used > 0) this.hits.push({ row, x0, x1, time: from, blend: { totals, length, runs, lane } });
    });
  }

  loop(item, time, level) {
    const row = this.layout.loops[level];
    if (!row) return;
    const [x0, x1] = [this.x(time), this.x(time + item.duration)];
    this.fill(x0, row.top, x1 - x0, row.height, this.colours.soft);
    this.fill(x0, row.top, 1, row.height, this.colours.faint);
    if (item.body.duration * this.view.scale < 70) {
      this.write(`${item.name} × ${turns(item.count)}`, x0, x1, row.top + 13, this.colours.ink);
    }
    this.hits.push({ row, x0, x1, time, item });
  }

  iteration(item, number, time, level) {
    const row = this.layout.loops[level];
    const width = item.body.duration * this.view.scale;
    if (!row || width < 5) return;
    const [x0, x1] = [this.x(time), this.x(time + item.body.duration)];
    // Short ticks leave room for the name of the loop where the iterations have none.
    const top = width >= 70 ? 0 : row.height - 4;
    if (time >= this.view.from) this.fill(x0, row.top + top, 1, row.height - top, this.colours.faint);
    if (width >= 70) {
      const text = `${item.name} ${whole(number + 1)} / ${turns(item.count)}`;
      this.write(text, x0, x1, row.top + 13, this.colours.ink);
    }
  }

  mark(item, time) {
    const row = this.layout.marks;
    if (!row) return;
    const x = this.x(time);
    const { context } = this;
    context.fillStyle = this.colours.accent;
    context.beginPath();
    context.moveTo(x, row.top);
    context.lineTo(x + 5, row.top + row.height);
    context.lineTo(x - 5, row.top + row.height);
    context.fill();
    this.hits.push({ row, x0: x - 5, x1: x + 5, time, item });
  }

  stageColour(stage) { return this.colours.stages[Math.min(stage, COLOURS - 1)]; }

  fill(x, y, width, height, colour) {
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, Math.max(width, 0.6), height);
  }

  /** A text if there is room for at least some of it. */
  write(text, x0, x1, y, colour) {
    const room = Math.floor((x1 - x0 - 8) / 6.2);
    if (room < Math.min(text.length, 6)) return;
    this.context.fillStyle = colour;
    this.context.fillText(text.length <= room ? text : `${text.slice(0, room - 1)}…`, x0 + 4, y);
  }

  frame(total) {
    const { context, view, layout, colours } = this;
    context.font = "11px system-ui, sans-serif";
    for (const row of layout.lanes) {
      this.fill(view.left, row.top + row.height, view.right - view.left, 1, colours.line);
      context.fillStyle = colours.faint;
      context.fillText(row.name, 0, row.top + row.height / 2 + 4);
    }
    if (layout.loops.length) context.fillText("loops", 0, layout.loops[0].top + 13);
    context.fillText("cycles", 0, 14);
    const step = tickStep(view.to - view.from, Math.max(2, Math.floor((view.right - view.left) / 110)));
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
      this.fill(this.x(t), 18, 1, layout.height - 18, colours.line);
      context.fillStyle = colours.faint;
      const text = tickText(t, step, total);
      const { width } = context.measureText(text);
      const place = Math.min(this.x(t) - width / 2, view.right - width);
      context.fillText(text, Math.max(view.left, place), 12);
    }
  }
}

/** The texts that describe a hit. */
export function hitLines(hit, stages, seconds) {
  const at = `from cycle ${whole(hit.time)}`;
  const lasting = (cycles) => `${whole(cycles)} cycles, ${duration(seconds(cycles))}`;
  if (hit.blend) {
    const { totals, length, runs, lane } = hit.blend;
    const parts = stages
      .map((name, s) => [name, totals[lane * stages.length + s] / length])
      .filter(([, part]) => part > 0.001)
      .sort((a, b) => b[1] - a[1]);
    return [`${hit.row.name}: ${whole(runs)} steps, too narrow at this zoom`,
      ...parts.slice(0, 5).map(([name, part]) => `${name}: ${percent(part)} of the time`), at];
  }
  const { item } = hit;
  if (item.body) {
    return [`${item.name}, ${turns(item.count)} times`, lasting(item.duration),
      `${lasting(item.body.duration)} each time`, `${whole(item.runs)} steps run`, at];
  }
  const { step } = item;
  const lines = [`${step.name} (${step.kind})`, `stage: ${step.stage || "other"}`];
  if (step.kind === "host") {
    const beside = step.overlapped ? "; beside the program" : "";
    const time = step.cycles.high ? interval(step.cycles.low, step.cycles.high, (c) => duration(seconds(c))) : "";
    return [...lines, `${dataSize(step.moved_bytes)}${time ? `, ${time}` : ""}${beside}; its time is not in the device's cycles`, at];
  }
  lines.push(`${interval(step.cycles.low, step.cycles.high, whole)} cycles; ${duration(seconds(step.cycles.low))}`);
  if (step.kind === "compute") {
    lines.push(`${whole(step.vertices)} vertices on ${whole(step.tiles)} tiles; balance ${step.balance.toFixed(2)}`);
  } else {
    lines.push(`${whole(step.tiles)} tiles${step.moved_bytes ? `; ${dataSize(step.moved_bytes)} moved` : ""}`);
  }
  return [...lines, `${step.how}${step.source ? `: ${step.source}` : ""}`, at];
}
