// Curves over tiles and over program steps, as SVG.

import { colourVariable, dataSize, makeSvg, redrawn, short, tooltip, whole } from "./page.js";

const MARGIN = { left: 74, right: 12, top: 14, bottom: 34 };

/** The smallest round step that makes at most `count` of a range: 1, 2 or 5 times a power of ten. */
export function tickStep(range, count, binary) {
  if (!(range > 0)) return 1;
  if (binary) return 2 ** Math.ceil(Math.log2(range / count));
  const power = 10 ** Math.floor(Math.log10(range / count));
  return power * [1, 2, 5, 10].find((m) => m * power * count >= range);
}

/** At most `columns` places, each the fullest of those that share its column: peaks stay. */
function thinned(totals, columns) {
  const n = totals.length;
  if (n <= columns) return Array.from({ length: n }, (_, i) => ({ from: i, to: i + 1, peak: i }));
  return Array.from({ length: columns }, (_, c) => {
    const [from, to] = [Math.floor((c * n) / columns), Math.floor(((c + 1) * n) / columns)];
    let peak = from;
    for (let i = from; i < to; i += 1) if (totals[i] > totals[peak]) peak = i;
    return { from, to, peak };
  });
}

/**
 * A chart of layers on top of each other over equidistant places.
 *
 * layers  [{values, colour}], each of n values; unit formats a value.
 * guide   {value, label, kind}: a horizontal line; of kind "limit" it is a warning.
 * lines   texts of the tooltip at place i.   xTitle, label: texts.
 */
function layerChart({ layers, unit, guide, lines, xTitle, label, binary, height = 220, choose }) {
  const n = layers[0].values.length;
  const totals = new Float64Array(n);
  for (const { values } of layers) for (let i = 0; i < n; i += 1) totals[i] += values[i];
  const largest = totals.reduce((a, b) => Math.max(a, b), guide ? guide.value : 0) * 1.06 || 1;
  const svg = makeSvg("svg", { role: "img", "aria-label": label, height });
  const marker = makeSvg("line", { class: "chosen", y1: MARGIN.top, y2: height - MARGIN.bottom });
  let chosen = -1;
  const draw = () => {
    const width = Math.max(260, svg.getBoundingClientRect().width);
    const frame = { width, height, right: width - MARGIN.right, bottom: height - MARGIN.bottom };
    const x = (i) => MARGIN.left + ((frame.right - MARGIN.left) * i) / n;
    const y = (v) => frame.bottom - ((frame.bottom - MARGIN.top) * v) / largest;
    const columns = thinned(totals, Math.floor(frame.right - MARGIN.left));
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren(...axes({ frame, x, y, n, largest, unit, xTitle, binary }),
      ...areas(layers, columns, x, y), ...guideLine(guide, frame, y), ...(chosen < 0 ? [] : [marker]));
    marker.setAttribute("x1", x(chosen + 0.5));
    marker.setAttribute("x2", x(chosen + 0.5));
    const under = (event) => {
      const place = (event.clientX - svg.getBoundingClientRect().left - MARGIN.left) / (x(1) - x(0));
      return columns.find((c) => place >= c.from && place < c.to);
    };
    svg.onpointermove = (event) => {
      const found = under(event);
      tooltip(event, found && lines(found.peak));
    };
    if (choose) {
      svg.onclick = (event) => {
        const found = under(event);
        if (found) choose(found.peak);
      };
    }
  };
  svg.addEventListener("pointerleave", (event) => tooltip(event, null));
  const mark = (place) => {
    chosen = place;
    draw();
  };
  return { element: svg, start: () => redrawn(draw), mark };
}

function areas(layers, columns, x, y) {
  const base = new Float64Array(columns.length);
  return layers.map(({ values, colour }) => {
    const upper = [];
    const lower = [];
    columns.forEach(({ from, to, peak }, c) => {
      const top = base[c] + values[peak];
      upper.push(`${x(from).toFixed(2)},${y(top).toFixed(2)} ${x(to).toFixed(2)},${y(top).toFixed(2)}`);
      lower.push(`${x(to).toFixed(2)},${y(base[c]).toFixed(2)} ${x(from).toFixed(2)},${y(base[c]).toFixed(2)}`);
      base[c] = top;
    });
    const points = `${upper.join(" ")} ${lower.reverse().join(" ")}`;
    const shape = makeSvg("polygon", { points });
    shape.style.fill = colour;
    return shape;
  });
}

function axes({ frame, x, y, n, largest, unit, xTitle, binary }) {
  const parts = [];
  const text = (px, py, anchor, value) => {
    parts.push(makeSvg("text", { x: px, y: py, "text-anchor": anchor }, value));
  };
  const step = tickStep(largest, 5, binary);
  for (let v = 0; v <= largest; v += step) {
    parts.push(makeSvg("line", { class: "axis", x1: MARGIN.left, x2: frame.right, y1: y(v), y2: y(v) }));
    text(MARGIN.left - 8, y(v) + 4, "end", unit(v));
  }
  const across = Math.max(1, tickStep(n, 10));
  for (let i = 0; i < n; i += across) text(x(i), frame.bottom + 14, "middle", whole(i));
  text((MARGIN.left + frame.right) / 2, frame.height - 4, "middle", xTitle);
  return parts;
}

function guideLine(guide, frame, y) {
  if (!guide) return [];
  const at = y(guide.value);
  return [
    makeSvg("line", { class: guide.kind, x1: MARGIN.left, x2: frame.right, y1: at, y2: at }),
    makeSvg("text", { class: `${guide.kind}-label`, x: MARGIN.left, y: Math.min(at, MARGIN.top) - 4 }, guide.label),
  ];
}

export function memoryPerTile(memory, categories) {
  const names = Object.keys(categories);
  const at = (i) => names.map((name) => [name, categories[name][i]]).filter(([, v]) => v > 0);
  return layerChart({
    layers: names.map((name, i) => ({ values: categories[name], colour: colourVariable(i) })),
    unit: dataSize, binary: true, xTitle: "tile", guide: memoryLimit(memory),
    label: `Memory of every tile; at most ${dataSize(memory.max_tile_bytes)}`,
    lines: (i) => [`Tile ${i}: ${dataSize(memory.per_tile_bytes[i])}`,
      `${dataSize(memory.always_live_bytes[i])} always live`,
      ...at(i).map(([name, v]) => `${name}: ${dataSize(v)}`)],
  });
}

export function memoryOverTime(memory, choose) {
  const values = memory.timeline.map(([, bytes]) => bytes);
  return layerChart({
    layers: [{ values, colour: "var(--s0)" }], unit: dataSize, binary: true,
    xTitle: "program step that allocates", guide: memoryLimit(memory), height: 180, choose,
    label: `Memory of the fullest tile after each step; at most ${dataSize(Math.max(...values))}`,
    lines: (i) => [memory.timeline[i][0], `${dataSize(values[i])} on the fullest tile`],
  });
}

const memoryLimit = (memory) => ({
  kind: "limit", value: memory.limit_bytes, label: `limit of a tile, ${dataSize(memory.limit_bytes)}`,
});

export function computePerTile(values) {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return layerChart({
    layers: [{ values, colour: "var(--s0)" }], unit: short, xTitle: "tile", height: 180,
    guide: { kind: "mean", value: mean, label: `mean of all tiles, ${short(mean)} cycles` },
    label: `Compute cycles of every tile; on average ${whole(mean)}`,
    lines: (i) => [`Tile ${i}`, `${whole(values[i])} compute cycles`],
  });
}
