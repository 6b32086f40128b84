// The pipeline: which IPU works on which micro-batch, as a Gantt chart.

import { colourVariable, duration, make, makeSvg, percent, redrawn, short, tooltip, whole } from "./page.js";

const ROW = 26;
const GAP = 6;
const LEFT = 62;
const AXIS = 22;

/** The chart and its figures; `start` draws it once it is in the page. */
export function gantt(pipeline, clock) {
  const { bars, cycles, phases, bubble, stages, order, micro_batches: batches } = pipeline;
  const height = stages.length * (ROW + GAP) + AXIS + 8;
  const svg = makeSvg("svg", { role: "img", height,
    "aria-label": `Pipeline of ${stages.length} IPUs and ${batches} micro-batches` });
  const draw = () => {
    const width = Math.max(260, svg.getBoundingClientRect().width);
    const x = (t) => LEFT + ((width - LEFT - 8) * t) / cycles.low;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren(...edges(phases, x, height), ...bars.flatMap(([ipu, batch, from, to, kind]) => {
      const top = 4 + ipu * (ROW + GAP);
      const box = makeSvg("rect", { class: `gantt ${kind}`, x: x(from), y: top, height: ROW, rx: 2,
        width: Math.max(0.6, x(to) - x(from) - 1) });
      box.style.fill = colourVariable(batch === null ? 8 : batch % 8);
      const what = batch === null ? "Update" : `Micro-batch ${batch}, ${kind},`;
      box.addEventListener("pointermove", (event) => tooltip(event, [`${what} on IPU ${ipu}`,
        `cycles ${whole(from)} to ${whole(to)}`, duration((to - from) / clock)]));
      const room = x(to) - x(from) > 16;
      const label = room ? [makeSvg("text", { class: "on-bar", x: (x(from) + x(to)) / 2, y: top + 17,
        "text-anchor": "middle" }, batch === null ? "update" : String(batch))] : [];
      return [box, ...label];
    }), ...stages.map((_, ipu) => makeSvg("text", { x: 0, y: 4 + ipu * (ROW + GAP) + 17 }, `IPU ${ipu}`)));
  };
  svg.addEventListener("pointerleave", (event) => tooltip(event, null));
  const trained = bars.some((bar) => bar[4] === "backward");
  const words = `${batches} micro-batches${trained ? ` (${order})` : ""} in ${short(cycles.low)} cycles; the IPUs wait ${percent(bubble)} of the time `
    + `(bubble). Warm-up ${short(phases.warm_up)}, full use ${short(phases.full)}, drain ${short(phases.drain)}, update `
    + `${short(phases.update)} cycles.${trained ? " Backward passes are paler." : ""}`;
  return { elements: [make("p", {}, words), svg], start: () => redrawn(draw) };
}

/** Lines where all IPUs begin and cease to be in use. */
function edges({ warm_up: warmUp, full }, x, height) {
  const line = (t, text, anchor) => [
    makeSvg("line", { class: "axis", x1: x(t), x2: x(t), y1: 0, y2: height - AXIS + 6 }),
    makeSvg("text", { x: x(t), y: height - 4, "text-anchor": anchor }, text)];
  return [...line(warmUp, "in full use", "start"), ...line(warmUp + full, "drain", "end")];
}
