// Cards and tables.

import {
  colourVariable, dataSize, duration, interval, make, percent, short, swatch, whole,
} from "./page.js";

const SHOWN_ROWS = 15;

/** columns: [{title, number, wide}]; rows: arrays of texts or elements, the first a row header. */
function table(caption, columns, rows, totalRow) {
  const shape = (c) => [c.number && "number", c.wide && "wide"].filter(Boolean).join(" ");
  const head = columns.map((c) => make("th", { scope: "col", class: shape(c) }, c.title));
  const line = (cells, kind) => make("tr", kind ? { class: kind } : {}, ...cells.map((cell, i) => {
    if (i > 0) return make("td", { class: shape(columns[i]) }, cell);
    const header = make("th", { scope: "row", class: "name" }, cell);
    header.title = header.textContent;
    return header;
  }));
  const body = make("tbody", {}, ...rows.map((cells) => line(cells)));
  if (totalRow) body.append(line(totalRow, "total"));
  const parts = [make("table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...head)), body)];
  const hidden = [...body.rows].slice(SHOWN_ROWS + 3, rows.length);
  if (hidden.length) parts.push(showAll(hidden, rows.length));
  return make("div", { class: "scroll" }, ...parts);
}

function showAll(hidden, count) {
  hidden.forEach((row) => { row.hidden = true; });
  const button = make("button", { type: "button", style: { marginTop: "8px" } }, `Show all ${count}`);
  button.addEventListener("click", () => {
    hidden.forEach((row) => { row.hidden = false; });
    button.remove();
  });
  return button;
}

/** Low and, paler, high, relative to the largest of a table. */
function bar(low, high, largest, colour) {
  const width = (x) => `${largest ? (100 * x) / largest : 0}%`;
  const part = (x, kind) => make("i", { class: kind, style: { width: width(x), background: colour } });
  return make("div", { class: "bar", "aria-hidden": "true" }, part(high, "high"), part(low, "low"));
}

function card(label, value, detail, warn) {
  return make("div", { class: warn ? "card warn" : "card" },
    make("div", { class: "label" }, label), make("div", { class: "value" }, value),
    make("div", { class: "detail" }, detail));
}

export function cards(profile) {
  const { cycles, seconds, host_seconds: host, memory } = profile;
  const compute = cycles.by_kind.compute || { low: 0 };
  const over = memory.overflowing_tiles.length;
  const bound = cycles.is_lower_bound ? ", at least" : "";
  const list = [
    card(`Device cycles${bound}`, short(cycles.total), `${short(cycles.high)} as compiled code`),
    card(`Device time${bound}`, duration(seconds.low), `${duration(seconds.high)} as compiled code`),
    card("Compute", percent(cycles.total ? compute.low / cycles.total : 0), "of the cycles; the rest is exchange and sync"),
    card("Tile balance", profile.tile_balance.all.toFixed(2), "mean over busiest tile of the compute sets"),
    card("Fullest tile", dataSize(memory.max_tile_bytes),
      over ? `${whole(over)} out of memory: the limit is ${dataSize(memory.limit_bytes)}`
        : `${percent(memory.max_tile_bytes / memory.limit_bytes)} of ${dataSize(memory.limit_bytes)}`, over > 0),
    ...(memory.executable_bytes === null ? [] : [card("Code of a tile", dataSize(memory.max_code_bytes),
      `of ${dataSize(memory.executable_bytes)} that can run`, memory.code_overflowing_tiles.length > 0)]),
    card("Floating-point operations", short(profile.rates.all.flops),
      `${percent(profile.rates.all.flops_share)} of the matrix units' peak, of low cycles`),
    card("Host exchange", duration(host.mid), interval(host.low, host.high, duration)),
  ];
  if (profile.energy_hartree !== null) {
    list.push(card("Energy", profile.energy_hartree.toFixed(6), "hartree"));
  }
  const unknown = Object.keys(profile.unknown_ops);
  if (unknown.length) {
    list.push(card("Not priced", `${unknown.length} op${unknown.length > 1 ? "s" : ""}`, unknown.join(", "), true));
  }
  return make("div", { class: "cards" }, ...list);
}

const CYCLE_COLUMNS = [
  { title: "low", number: true }, { title: "high", number: true }, { title: "share", number: true },
];

export function stageTable(profile, stages) {
  const { total, by_stage: byStage } = profile.cycles;
  const largest = Math.max(...Object.values(byStage).map((c) => c.high), 0);
  const rows = stages.map((name, i) => {
    const c = byStage[name];
    const balance = profile.tile_balance[name];
    return [make("span", {}, swatch(i), name), whole(c.low), whole(c.high),
      percent(total ? c.low / total : 0), bar(c.low, c.high, largest, colourVariable(i)),
      balance === undefined ? "" : balance.toFixed(2),
      balance === undefined ? "" : bar(balance, balance, 1, "var(--s9)")];
  });
  const columns = [{ title: "stage" }, ...CYCLE_COLUMNS, { title: "low and high", wide: true },
    { title: "tile balance", number: true }, { title: "mean / busiest tile", wide: true }];
  return table("Cycles of every stage, and how evenly its compute sets use the tiles.", columns, rows,
    ["total", whole(total), whole(profile.cycles.high), "", "", profile.tile_balance.all.toFixed(2), ""]);
}

export function rateTable(profile) {
  const tera = (x) => (x / 1e12).toFixed(3);
  const rows = Object.entries(profile.rates).sort((a, b) => b[1].cycles - a[1].cycles).map(([name, r]) => [
    name, short(r.flops), tera(r.flops_per_second), percent(r.flops_share), tera(r.bytes_per_second), percent(r.bytes_share), r.bound]);
  return table("Work per second of low cycles, as a share of the chip's peak, and what holds it up.",
    [{ title: "stage" }, { title: "flop", number: true }, { title: "Tflop/s", number: true }, { title: "of peak", number: true },
      { title: "TB/s of tile memory", number: true }, { title: "of peak", number: true }, { title: "bound by" }], rows);
}

export function ipuTable(profile) {
  const largest = Math.max(...profile.ipus.map((x) => x.compute_cycles), 0);
  const rows = profile.ipus.map((x) => [`IPU ${x.ipu}`, whole(x.replica), whole(x.machine), whole(x.compute_cycles),
    bar(x.mean_compute_cycles, x.compute_cycles, largest, "var(--s0)"), percent(x.busy), dataSize(x.max_tile_bytes)]);
  return table("Every IPU: compute of its busiest tile (pale) and of its mean tile, and its fullest tile.",
    [{ title: "" }, { title: "replica", number: true }, { title: "machine", number: true },
      { title: "busiest tile", number: true }, { title: "", wide: true }, { title: "busy", number: true },
      { title: "fullest tile", number: true }], rows);
}

export function vertexTable(vertices, profile) {
  const largest = Math.max(...vertices.map((v) => v.cycles.high), 0);
  const { total } = profile.cycles;
  const rows = vertices.map((v) => [
    v.name, whole(v.cycles.low), whole(v.cycles.high), percent(total ? v.cycles.low / total : 0),
    bar(v.cycles.low, v.cycles.high, largest, "var(--s0)"), whole(v.runs), whole(v.instances),
    v.balance.toFixed(2), v.how,
  ]);
  const columns = [{ title: "vertex" }, ...CYCLE_COLUMNS, { title: "low and high", wide: true },
    { title: "compute sets run", number: true }, { title: "instances run", number: true },
    { title: "balance", number: true }, { title: "how" }];
  return table("Cycles of the busiest tile in the compute sets of each vertex type.", columns, rows);
}

export function countTable(counts) {
  const rows = Object.entries(counts).map(([name, c]) => [name, whole(c.written), whole(c.executed)]);
  return table("Steps as written in the program, and as executed.",
    [{ title: "" }, { title: "written", number: true }, { title: "executed", number: true }], rows);
}

export function provenanceTable(profile) {
  const { total } = profile.cycles;
  const rows = Object.entries(profile.provenance).map(([how, c]) => [
    how, whole(c.low), percent(total ? c.low / total : 0), bar(c.low, c.low, total, "var(--s0)"),
  ]);
  return table("Where the cycles come from.", [{ title: "source" }, { title: "low", number: true },
    { title: "share", number: true }, { title: "", wide: true }], rows);
}

export function unknownTable(unknown) {
  const rows = Object.entries(unknown).sort((a, b) => b[1] - a[1]).map(([name, n]) => [name, whole(n)]);
  return table("Operations without a cost rule: the total is a lower bound.",
    [{ title: "operation" }, { title: "times run", number: true }], rows);
}

export function categoryTable(memory, categories) {
  const largest = Math.max(...categories.map((name) => memory.by_category[name].total_bytes), 0);
  const rows = categories.map((name, i) => {
    const c = memory.by_category[name];
    return [make("span", {}, swatch(i), name), dataSize(c.max_bytes), dataSize(c.total_bytes),
      bar(c.total_bytes, c.total_bytes, largest, colourVariable(i))];
  });
  return table("Memory by category, each tile at its own highest load.", [{ title: "category" },
    { title: "fullest tile", number: true }, { title: "all tiles", number: true },
    { title: "", wide: true }], rows);
}

export function bufferTable(memory) {
  const rows = memory.largest.map((b) => [
    b.name, b.stage, b.category, dataSize(b.tile_bytes), dataSize(b.total_bytes)]);
  return table("Largest buffers of the fullest tile at its highest load.", [{ title: "buffer" },
    { title: "stage" }, { title: "category" }, { title: "this tile", number: true },
    { title: "all tiles", number: true }], rows);
}

/** lifetimes: [name, stage, first step, end, bytes on its fullest tile, bytes]; those of one name are one row. */
export function liveTable(lifetimes, step) {
  const alike = new Map();
  for (const [name, stage, first, end, most, total] of lifetimes) {
    const key = `${name}\n${stage}`;
    const row = alike.get(key) || { name, stage, count: 0, most: 0, total: 0, first, end };
    alike.set(key, { name, stage, count: row.count + 1, most: row.most + most, total: row.total + total,
      first: Math.min(row.first, first), end: Math.max(row.end, end) });
  }
  const found = [...alike.values()].sort((x, y) => y.most - x.most);
  const largest = Math.max(...found.map((x) => x.most), 0);
  const rows = found.map((x) => [x.name, x.stage, whole(x.count), dataSize(x.most),
    bar(x.most, x.most, largest, "var(--s0)"), dataSize(x.total), whole(x.first), whole(x.end)]);
  return table(`Variables that are live at step ${whole(step)}; a vertex's own memory and code are not among them.`,
    [{ title: "variable" }, { title: "stage" }, { title: "number", number: true },
      { title: "their fullest tiles", number: true }, { title: "", wide: true }, { title: "all tiles", number: true },
      { title: "from step", number: true }, { title: "to", number: true }], rows);
}

export function regionTable(memory) {
  const limits = { "Non-interleaved": memory.executable_bytes, Interleaved: memory.limit_bytes - memory.executable_bytes };
  const rows = Object.entries(memory.by_region).map(([name, c]) => {
    const limit = limits[name];
    return [name, dataSize(c.max_bytes), limit ? dataSize(limit) : "",
      limit ? bar(c.max_bytes, c.max_bytes, limit, "var(--s0)") : "", dataSize(c.total_bytes)];
  });
  return table("Memory by region: code runs only from the first; the matrix unit reads only the second.",
    [{ title: "region" }, { title: "fullest tile", number: true }, { title: "of", number: true },
      { title: "", wide: true }, { title: "all tiles", number: true }], rows);
}

/** rows: [{name, a, b}]; the ratio is coloured where it departs from 1 by more than 1 %. */
export function comparisonTable(caption, rows, unit) {
  const ratio = ({ a, b }) => {
    if (!a) return "";
    const kind = b / a > 1.01 ? "worse" : b / a < 0.99 ? "better" : "";
    return make("span", kind ? { class: kind } : {}, (b / a).toFixed(3));
  };
  const lines = rows.map((r) => [r.name, unit(r.a), unit(r.b), ratio(r)]);
  const total = rows.length && rows.at(-1).name === "total" ? lines.pop() : undefined;
  return table(caption, [{ title: "" }, { title: "A", number: true }, { title: "B", number: true },
    { title: "B / A", number: true }], lines, total);
}
