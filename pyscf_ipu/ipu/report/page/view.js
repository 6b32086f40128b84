// What of the timeline is seen, and how the pointer, the keys and the address move it.

import { duration, fitCanvas, make, redrawn, theme, tooltip, whole } from "./page.js";
import { buildProgram, visit } from "./program.js";
import { GUTTER, NARROWEST_VIEW, Painter, hitLines, rowLayout } from "./timeline.js";

/** The timeline's elements; `start` draws once they are in the page. */
export function timeline(encoded, stages, clock) {
  const programs = {};
  const main = make("canvas", {
    class: "zoomable", tabindex: "0", role: "img",
    "aria-label": "Timeline of the program. Keys: plus and minus zoom, 0 shows all, arrows move.",
  });
  const overview = make("canvas", { class: "overview", "aria-hidden": "true" });
  const range = make("output");
  const detail = make("p", { class: "detail-panel", "aria-live": "polite" },
    "Click a step or a loop to keep its description here; double-click to zoom to it.");
  const state = { which: "low", from: 0, to: 1, hits: [] };
  const program = () => {
    programs[state.which] ||= buildProgram(encoded, stages, state.which);
    return programs[state.which];
  };
  const total = () => program().root.duration;
  const seconds = (cycles) => cycles / clock;

  const draw = () => {
    const layout = rowLayout(program().depth);
    const { context, width } = fitCanvas(main, layout.height);
    const view = viewOf(state, GUTTER, width);
    const painter = new Painter(context, view, layout, theme(), stages);
    painter.frame(total());
    visit(program().root, 0, view, painter);
    state.hits = painter.hits;
    document.documentElement.dataset.boxes = painter.hits.length;
    range.textContent = `${whole(state.from)} to ${whole(state.to)}: `
      + `${whole(state.to - state.from)} cycles, ${duration(seconds(state.to - state.from))}`;
    drawOverview(overview, program(), state, stages);
  };
  const look = (from, to) => {
    const span = Math.min(total(), Math.max(NARROWEST_VIEW, to - from));
    state.from = Math.min(Math.max(0, (from + to - span) / 2), total() - span);
    state.to = state.from + span;
    requestDraw(state, draw);
  };
  const controls = { main, overview, state, total, look, detail };
  const describe = (hit) => hitLines(hit, stages, seconds);
  const tools = toolBar(controls, range);
  listen(controls, describe);
  const start = () => {
    const [from, to] = addressRange() || [0, total()];
    state.to = total();
    look(from, to);
    redrawn(draw);
    state.ready = true;
  };
  return { elements: [tools, overview, main, detail], start };
}

function viewOf({ from, to }, left, right) {
  return { from, to, left, right, scale: (right - left) / (to - from) };
}

/** One drawing per frame, however often it is asked for; the address follows when all is quiet. */
function requestDraw(state, draw) {
  if (!state.frame) {
    state.frame = requestAnimationFrame(() => {
      state.frame = 0;
      draw();
    });
  }
  clearTimeout(state.timer);
  if (state.ready) state.timer = setTimeout(() => writeAddress(state), 300);
}

/** Cycles from the address, "#from=..&to=..", or undefined. */
function addressRange() {
  const found = /^#from=([\d.e+]+)&to=([\d.e+]+)$/.exec(location.hash);
  return found ? [Number(found[1]), Number(found[2])] : undefined;
}

function writeAddress({ from, to }) {
  history.replaceState(null, "", `#from=${Math.round(from)}&to=${Math.round(to)}`);
}

function drawOverview(canvas, program, state, stages) {
  const height = 40;
  const { context, width } = fitCanvas(canvas, height);
  const all = viewOf({ from: 0, to: program.root.duration }, 0, width);
  const colours = theme();
  const layout = { loops: [], lanes: [{ name: "compute", top: 0, height }] };
  const painter = new Painter(context, all, layout, colours, stages);
  painter.write = () => {};
  visit(program.root, 0, all, painter);
  const [x0, x1] = [painter.x(state.from), painter.x(state.to)];
  context.globalAlpha = 0.7;
  painter.fill(0, 0, x0 - 0.6, height, colours.card);
  painter.fill(x1, 0, width - x1, height, colours.card);
  context.globalAlpha = 1;
  context.strokeStyle = colours.accent;
  context.lineWidth = 2;
  context.strokeRect(Math.min(x0, width - 4) + 1, 1, Math.max(2, x1 - x0 - 2), height - 2);
}

function toolBar({ look, state, total }, range) {
  const button = (text, label, action) => {
    const element = make("button", { type: "button", title: label, "aria-label": label }, text);
    element.addEventListener("click", action);
    return element;
  };
  const which = button("Low cycles", "Switch between the low and the high end of the cycles", () => {
    const [a, b] = [state.from / total(), state.to / total()];
    state.which = state.which === "low" ? "high" : "low";
    which.textContent = state.which === "low" ? "Low cycles" : "High cycles";
    look(a * total(), b * total());
  });
  return make("div", { class: "tools" },
    button("+", "Zoom in", () => zoom(state, look, 0.5)),
    button("−", "Zoom out", () => zoom(state, look, 2)),
    button("All", "Show the whole program", () => look(0, total())), which, range);
}

/** Scale the view by `factor`, keeping the place at `fraction` of its width where it is. */
function zoom(state, look, factor, fraction = 0.5) {
  const fixed = state.from + fraction * (state.to - state.from);
  look(fixed - factor * (fixed - state.from), fixed + factor * (state.to - fixed));
}

function pan(state, look, fraction) {
  const shift = fraction * (state.to - state.from);
  look(state.from + shift, state.to + shift);
}

function listen(controls, describe) {
  const { main, overview, state, total, look, detail } = controls;
  const place = (event) => {
    const { left, width } = main.getBoundingClientRect();
    return (event.clientX - left - GUTTER) / (width - GUTTER);
  };
  const hitAt = (event) => {
    const x = event.offsetX;
    const y = event.offsetY;
    return state.hits.findLast((h) => x >= h.x0 && x <= h.x1 + 0.5 && y >= h.row.top && y <= h.row.top + h.row.height);
  };
  main.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(state, look, event.deltaX / 1000);
    else zoom(state, look, Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 400), place(event));
  }, { passive: false });
  main.addEventListener("pointerdown", (event) => {
    main.setPointerCapture(event.pointerId);
    state.drag = { x: event.clientX, from: state.from, to: state.to };
  });
  main.addEventListener("pointermove", (event) => {
    if (!state.drag) {
      const hit = hitAt(event);
      tooltip(event, hit && describe(hit));
      return;
    }
    tooltip(event, null);
    const { width } = main.getBoundingClientRect();
    const shift = ((state.drag.x - event.clientX) / (width - GUTTER)) * (state.drag.to - state.drag.from);
    look(state.drag.from + shift, state.drag.to + shift);
  });
  main.addEventListener("pointerup", () => { state.drag = undefined; });
  main.addEventListener("pointerleave", (event) => tooltip(event, null));
  main.addEventListener("click", (event) => {
    const hit = hitAt(event);
    if (!hit) return;
    const [head, ...rest] = describe(hit);
    detail.replaceChildren(make("strong", {}, head), ` ${rest.join(" · ")}`);
  });
  main.addEventListener("dblclick", (event) => {
    const hit = hitAt(event);
    if (hit && hit.item) look(hit.time, hit.time + hit.item.duration);
    else zoom(state, look, 0.2, place(event));
  });
  listenToOverview(overview, state, total, look);
  addEventListener("keydown", (event) => moveByKey(event, state, total, look, main));
  addEventListener("hashchange", () => { const r = addressRange(); if (r) look(...r); });
}

function listenToOverview(overview, state, total, look) {
  const centre = (event) => {
    const { left, width } = overview.getBoundingClientRect();
    const middle = ((event.clientX - left) / width) * total();
    const half = (state.to - state.from) / 2;
    look(middle - half, middle + half);
  };
  overview.addEventListener("pointerdown", (event) => {
    overview.setPointerCapture(event.pointerId);
    centre(event);
  });
  overview.addEventListener("pointermove", (event) => { if (event.buttons) centre(event); });
}

/** Plus, minus and 0 anywhere in the page; arrows where the timeline has the focus. */
function moveByKey(event, state, total, look, main) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const actions = {
    "+": () => zoom(state, look, 0.5), "=": () => zoom(state, look, 0.5),
    "-": () => zoom(state, look, 2), 0: () => look(0, total()),
  };
  if (document.activeElement === main) {
    actions.ArrowLeft = () => pan(state, look, -0.2);
    actions.ArrowRight = () => pan(state, look, 0.2);
  }
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}
