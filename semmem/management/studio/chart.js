// Figures over time, each chart with its newest values in words. The SVG is stretched to its place; text is HTML, which
// keeps its size.

import { h, svg } from "./dom.js";

const HIGH = 100;
const FAINT = 2;
const GAPLESS = 60;

// `times`: what each place is called, the oldest first. `series`: of { name, values, shape: "columns" or "curve", tone:
// "a", "b", "c" or "bad" }, with a value for each place, null where nothing is known; the last one is in front. `heights`
// are those of columns that stand on others. `told` writes a value.
export function chart(title, times, series, told) {
  const last = times.length - 1, highest = Math.max(0, ...series.flatMap((each) => each.values));
  const drawn = series.map((each) => each.heights ?? each.values), most = rounded(Math.max(0, ...drawn.flat()));
  const say = (value) => (value === null ? "none" : told(value));
  const label = `${title}, ${times[0]} to ${times[last]}: ${series.map((each) => `${each.name} ${say(each.values[last])}`).join(", ")} at the end, at most ${told(highest)}.`;
  const cursor = svg("rect", { class: "cursor", y: 0, width: 1, height: HIGH, visibility: "hidden" });
  const image = svg("svg", { viewBox: `0 0 ${times.length} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, cursor,
    ...[0, HIGH / 2, HIGH].map((y) => svg("path", { class: "grid", d: `M0 ${y}H${times.length}` })),
    ...series.map(({ shape, tone }, index) => svg("path", { class: `${shape} ${tone}`, d: SHAPES[shape](drawn[index], most) })));
  const values = series.map(() => h("b")), when = h("span");
  const show = (place, pointed) => {
    series.forEach((each, index) => { values[index].textContent = say(each.values[place]); });
    when.textContent = pointed ? times[place] : "";
    cursor.setAttribute("x", place);
    cursor.setAttribute("visibility", pointed ? "visible" : "hidden");
  };
  show(last);
  const at = (event) => {
    const box = image.getBoundingClientRect();
    show(Math.min(last, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * times.length))), true);
  };
  return h("figure", { class: "chart" },
    h("figcaption", {}, h("b", {}, title), h("span", { class: "marks" }, series.map((each, index) => h("span", { class: `key ${each.shape} ${each.tone}` }, each.name, " ", values[index])))),
    h("div", { class: "plot", onpointermove: at, onpointerdown: at, onpointerleave: () => show(last) }, h("span", { class: "top", "aria-hidden": "true" }, told(most)), image),
    h("div", { class: "axis", "aria-hidden": "true" }, h("span", {}, times[0]), when, h("span", {}, times[last])));
}

// The next that is easily read, and half of it too.
function rounded(value) {
  if (!value) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 6, 8, 10].map((each) => each * size).find((each) => each >= value);
}

const height = (value, most) => HIGH - (HIGH * value) / most;

// What is little can still be seen.
function columns(values, most) {
  const gap = values.length > GAPLESS ? 0 : 0.12;
  return values.map((value, place) => (value ? `M${place + gap} ${HIGH}V${Math.min(HIGH - FAINT, height(value, most))}H${place + 1 - gap}V${HIGH}Z` : "")).join("");
}

// Broken where nothing is known; of one value alone a dot.
function curve(values, most) {
  const known = (place) => (values[place] ?? null) !== null;
  return values.map((value, place) => (known(place) ? `${known(place - 1) ? "L" : "M"}${place + 0.5} ${height(value, most)}${known(place - 1) || known(place + 1) ? "" : "h0"}` : "")).join("");
}

const SHAPES = { columns, curve };
