// Units, elements and colours: what every part of the page uses.

export const whole = (x) => Math.round(x).toLocaleString("en-US");
/** A count of turns, which may be a mean over the turns of a loop around it. */
export const turns = (x) => (Number.isInteger(x) ? whole(x) : Number(x.toPrecision(3)).toLocaleString("en-US"));
export const percent = (x) => `${(100 * x).toFixed(1)} %`;

/** A number to three digits with k, M or G: for axes and cards. */
export function short(x) {
  for (const [scale, unit] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (Math.abs(x) >= scale) return `${Number((x / scale).toPrecision(3))}${unit}`;
  }
  return String(Number(x.toPrecision(3)));
}

export function dataSize(bytes) {
  let value = bytes;
  let unit = "B";
  for (const larger of ["KiB", "MiB", "GiB"]) {
    if (Math.abs(value) < 1024) break;
    [value, unit] = [value / 1024, larger];
  }
  return unit === "B" ? `${Math.round(value)} B` : `${value.toFixed(1)} ${unit}`;
}

export function duration(seconds) {
  const [scale, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([s]) => seconds >= s) || [1e-9, "ns"];
  const value = seconds / scale;
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit}`;
}

/** Both ends of an interval, or one number where they are printed alike. */
export function interval(low, high, unit) {
  const [a, b] = [unit(low), unit(high)];
  return a === b ? a : `${a} to ${b}`;
}

/** An element. Texts are never parsed as HTML: names come from the user's program. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") Object.assign(element.style, value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const COLOURS = 10;
export const colourVariable = (i) => `var(--s${Math.min(i, COLOURS - 1)})`;

/** The values of CSS variables, for canvases; they change with the colour scheme. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    ink: read("--ink"), faint: read("--faint"), line: read("--line"), soft: read("--soft"),
    card: read("--card"), accent: read("--accent"),
    stages: Array.from({ length: COLOURS }, (_, i) => read(`--s${i}`)),
  };
}

export function swatch(i) {
  return make("span", { class: "swatch", style: { background: colourVariable(i) } });
}

export function legend(names) {
  return make("div", { class: "legend" },
    ...names.map((name, i) => make("span", {}, swatch(i), name)));
}

/** A section of the report, also listed in the contents. */
export function section(id, title, about, ...children) {
  document.getElementById("contents").append(make("a", { href: `#${id}` }, title));
  const head = [make("h2", {}, title)];
  if (about) head.push(make("p", { class: "about" }, about));
  return make("section", { id, "aria-label": title }, ...head, ...children);
}

/** Show lines at the pointer, the first one in bold; hide if there are none. */
export function tooltip(event, lines) {
  const box = document.getElementById("tooltip");
  box.hidden = !lines || !lines.length;
  if (box.hidden) return;
  box.replaceChildren(make("strong", {}, lines[0]), ...lines.slice(1).map((x) => make("div", {}, x)));
  const { width, height } = box.getBoundingClientRect();
  const x = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
  const y = event.clientY + 14 + height > innerHeight ? event.clientY - 14 - height : event.clientY + 14;
  box.style.left = `${Math.max(0, x)}px`;
  box.style.top = `${Math.max(0, y)}px`;
}

/** A canvas with one unit per CSS pixel, sharp on screens of any density; its 2D context. */
export function fitCanvas(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(200, canvas.clientWidth);
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width };
}

/** Call `draw` now, and again whenever the width or the colour scheme changes. */
export function redrawn(draw) {
  draw();
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
