// Puts the page together.

import { computePerTile, memoryOverTime, memoryPerTile } from "./charts.js";
import { dataSize, duration, legend, make, section, whole } from "./page.js";
import {
  bufferTable, cards, categoryTable, comparisonTable, countTable, ipuTable, provenanceTable, rateTable, regionTable,
  stageTable, unknownTable, vertexTable,
} from "./tables.js";
import { gantt } from "./gantt.js";
import { liveBuffers } from "./live.js";
import { timeline } from "./view.js";

const data = JSON.parse(document.getElementById("data").textContent);
const { profile } = data;
const main = document.getElementById("main");
const stages = Object.keys(profile.cycles.by_stage);
const categories = Object.keys(data.categories);
const drawings = [];

/** The element of a drawing that begins once it is in the page and has a width. */
function drawn(drawing) {
  drawings.push(drawing.start);
  return drawing.element;
}

function comparisonSection({ names, low, high, seconds, memory }) {
  const cycles = section("comparison", "Comparison", `A: ${names[0]}.  B: ${names[1]}.`);
  const tables = [
    comparisonTable("Cycles by stage, low", low, whole),
    comparisonTable("Cycles by stage, high", high, whole),
    comparisonTable("Memory of the fullest tile", memory, dataSize),
    comparisonTable("Time", seconds, duration),
  ];
  cycles.append(make("div", { class: "columns" }, ...tables));
  return cycles;
}

function timelineSection() {
  const about = "Compute, exchange and sync alternate; colours are stages. Where steps are narrower "
    + "than a pixel, the filled height is the share of the time that the lane is in use. "
    + "Wheel or + and − zoom, dragging moves, 0 shows all.";
  if (!(profile.cycles.total > 0)) return section("timeline", "Timeline", "The program takes no cycles.");
  const { elements, start } = timeline(data.program, stages, profile.clock_hz);
  drawings.push(start);
  return section("timeline", "Timeline", about, legend(stages), ...elements);
}

function pipelineSection() {
  const { elements, start } = gantt(profile.pipeline, profile.clock_hz);
  drawings.push(start);
  return section("pipeline", "Pipeline", "", ...elements);
}

function memorySection() {
  const { memory } = profile;
  const over = memory.overflowing_tiles;
  const parts = [make("h3", {}, "By tile"), drawn(memoryPerTile(memory, data.categories)), legend(categories)];
  parts.unshift(...[["Out of memory", over], ["More code than can run", memory.code_overflowing_tiles],
    ["Too little interleaved memory", memory.interleaved_overflowing_tiles]].flatMap(([what, tiles]) => warning(what, tiles)));
  if (memory.timeline.length) parts.push(make("h3", {}, "Over the program"), ...liveParts(memory));
  const regions = Object.keys(memory.by_region).length ? [regionTable(memory)] : [];
  parts.push(make("div", { class: "columns", style: { marginTop: "18px" } },
    make("div", {}, categoryTable(memory, categories), ...regions), bufferTable(memory)));
  const room = memory.limit_bytes * profile.tiles;
  const used = memory.per_tile_bytes.reduce((a, b) => a + b, 0);
  const dram = memory.streaming_bytes ? ` ${dataSize(memory.streaming_bytes)} in streaming memory`
    + `${memory.streaming_limit_bytes ? ` of ${dataSize(memory.streaming_limit_bytes)}` : ""}.` : "";
  return section("memory", "Memory", `${dataSize(used)} in use of ${dataSize(room)}.${dram}`, ...parts);
}

function warning(what, tiles) {
  if (!tiles.length) return [];
  const some = tiles.slice(0, 12).join(", ") + (tiles.length > 12 ? ", .." : "");
  return [make("p", { class: "warning" }, `${what} on ${whole(tiles.length)} of ${whole(profile.tiles)} tiles: ${some}`)];
}

/** Memory over the program, and what is live at the step that is chosen there. */
function liveParts(memory) {
  if (!memory.lifetimes.length) return [drawn(memoryOverTime(memory))];
  const chart = memoryOverTime(memory, (step) => live.choose(step));
  const live = liveBuffers(memory, chart.mark);
  const parts = [drawn(chart), make("h3", {}, "Live at a step; click into the curve to choose one"), ...live.elements];
  drawings.push(live.start);
  return parts;
}

function originSection() {
  const parts = [countTable(data.counts), provenanceTable(profile)];
  if (Object.keys(profile.unknown_ops).length) parts.push(unknownTable(profile.unknown_ops));
  const about = "Low: what perfect code takes. High: what compiled code takes.";
  return section("program", "Program and provenance", about, make("div", { class: "columns" }, ...parts));
}

function fill() {
  document.getElementById("subtitle").textContent = `${data.title}, `
    + `${whole(profile.tiles)} tiles at ${(profile.clock_hz / 1e9).toFixed(3)} GHz, `
    + `${dataSize(profile.memory.limit_bytes)} per tile`;
  main.append(cards(profile), make("ul", { class: "findings" },
    ...data.findings.map((text) => make("li", {}, text))));
  if (data.comparison) main.append(comparisonSection(data.comparison));
  if (profile.pipeline) main.append(pipelineSection());
  main.append(timelineSection(),
    section("stages", "Stages", "", stageTable(profile, stages), rateTable(profile)),
    section("ipus", "IPUs", "", ipuTable(profile)),
    section("vertices", "Vertices", "", vertexTable(data.vertices, profile)),
    section("tiles", "Compute of every tile", "", drawn(computePerTile(profile.tile_compute_cycles))),
    memorySection(), originSection());
  if (profile.notes.length) {
    main.append(section("notes", "Notes", "", make("ul", { class: "notes" },
      ...profile.notes.map((note) => make("li", {}, note)))));
  }
}

fill();
drawings.forEach((start) => start());
document.documentElement.dataset.bars = document.querySelectorAll(".bar").length;
document.documentElement.dataset.ready = "true";
