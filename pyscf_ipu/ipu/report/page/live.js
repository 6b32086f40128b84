// The variables that are live at a step that the reader chooses.

import { dataSize, make, whole } from "./page.js";
import { liveTable } from "./tables.js";

/**
 * A slider over the steps that allocate, and the variables that are live at the chosen one.
 *
 * `choose` goes to a step, as the slider does; `start` goes to the fullest one.
 */
export function liveBuffers(memory, onChoice) {
  const { timeline, lifetimes } = memory;
  const slider = make("input", { type: "range", min: "0", max: String(timeline.length - 1), step: "1",
    "aria-label": "Program step whose live variables are shown" });
  const words = make("output", {});
  const place = make("div", { "aria-live": "polite" });
  const choose = (step) => {
    const k = Math.min(Math.max(0, Math.round(step)), timeline.length - 1);
    const [label, bytes] = timeline[k];
    const live = lifetimes.filter(([, , first, end]) => first <= k && k < end);
    slider.value = String(k);
    words.textContent = `step ${whole(k)}, ${label}: ${dataSize(bytes)} on the fullest tile, ${whole(live.length)} ${live.length === 1 ? "variable" : "variables"}`;
    place.replaceChildren(liveTable(live, k));
    document.documentElement.dataset.live = live.length;
    onChoice(k);
  };
  const button = (text, title, step) => {
    const element = make("button", { type: "button", title }, text);
    element.addEventListener("click", () => choose(step()));
    return element;
  };
  slider.addEventListener("input", () => choose(Number(slider.value)));
  const peak = timeline.reduce((best, [, bytes], k) => (bytes > timeline[best][1] ? k : best), 0);
  const tools = make("div", { class: "tools" },
    button("\u2212", "One step back", () => Number(slider.value) - 1), slider,
    button("+", "One step on", () => Number(slider.value) + 1),
    button("Fullest", "Go to the step that needs most", () => peak), words);
  return { elements: [tools, place], choose, start: () => choose(peak) };
}
