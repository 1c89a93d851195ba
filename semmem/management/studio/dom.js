// Elements, times and the few widgets that every page uses. Text is only ever set as text: nothing here parses HTML.

export function h(name, props = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (key in made && typeof value !== "string") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function fill(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return place;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, props = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(props)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const MOMENT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const NUMBER = new Intl.NumberFormat("en");

export const day = (time) => (time ? DAY.format(new Date(time)) : "");
export const moment = (time) => (time ? MOMENT.format(new Date(time)) : "");
// How long ago, in the largest unit that there is one of.
const UNITS = [["year", 365 * 86400], ["month", 30 * 86400], ["week", 7 * 86400], ["day", 86400], ["hour", 3600], ["minute", 60]];
const AGO = new Intl.RelativeTimeFormat("en", { style: "short", numeric: "always" });
export function age(time) {
  const seconds = (Date.now() - new Date(time)) / 1000;
  const [unit, size] = UNITS.find(([, each]) => seconds >= each) ?? [];
  return unit ? AGO.format(-Math.floor(seconds / size), unit) : "now";
}
export const number = (value) => NUMBER.format(value);
export const percent = (share) => `${Math.round(100 * share)} %`;
export const milliseconds = (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

export function debounced(act, wait = 250) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...args), wait);
  };
}

export function button(label, onclick, { kind = "", title, disabled } = {}) {
  return h("button", { type: "button", class: `button ${kind}`, onclick, title, disabled: disabled || undefined }, label);
}

export function chip(text, kind = "") {
  return h("span", { class: `chip ${kind}` }, text);
}

let ids = 0;

export function field(label, input, hint) {
  input.id ||= `field-${(ids += 1)}`;
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input, hint && h("p", { class: "hint" }, hint));
}

export function select(options, value, onchange) {
  const made = h("select", { onchange: () => onchange?.(made.value) });
  for (const [key, label] of options) made.append(h("option", { value: key, selected: key === value || undefined }, label));
  return made;
}

// What an input may be filled with, beside what is typed: pairs of a value and what is said of it.
export function choices(input, told) {
  if (!input.list) {
    const id = `choices-${(ids += 1)}`;
    input.after(h("datalist", { id }));
    input.setAttribute("list", id);
  }
  fill(input.list, told.map(([value, label]) => h("option", { value }, label)));
}

export function card(title, ...children) {
  const id = `card-${(ids += 1)}`;
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

export const loading = (lines = 3) =>
  h("div", { class: "loading", "aria-busy": "true" }, h("p", { class: "hidden" }, "Loading"),
    ...Array.from({ length: lines }, () => h("div", { class: "bone", "aria-hidden": "true" })));

export const empty = (title, text, ...actions) =>
  h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), text && h("p", {}, text), ...actions);

// Something that was asked for and is not known: nobody may take it for nothing.
export const failed = (error, again) =>
  h("div", { class: "failed", role: "alert" }, h("p", { class: "empty-title" }, "This could not be read"),
    h("p", {}, error.message), again && button("Try again", again));

// The same beside something else that says why.
export const unread = (what) => h("p", { class: "hint unread", role: "status" }, `${what} could not be read.`);

// What a page shows while it waits, and when that fails.
export async function shownIn(place, work, lines) {
  fill(place, loading(lines));
  try {
    fill(place, await work());
  } catch (error) {
    fill(place, failed(error, () => shownIn(place, work, lines)));
  }
}

export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function toast(text, { action, act, seconds = 5, kind = "", mark = "" } = {}) {
  const made = h("div", { class: `toast ${kind}` }, h("span", {}, text));
  const gone = () => made.remove();
  if (action) made.append(button(action, () => { gone(); act(); }, { kind: `quiet ${mark}` }));
  document.getElementById("toasts").append(made);
  setTimeout(gone, seconds * 1000);
  return gone;
}

export function dialog(title, body, ...actions) {
  const id = `dialog-${(ids += 1)}`;
  const made = h("dialog", { "aria-labelledby": id }, h("h2", { id }, title), body,
    h("div", { class: "row end" }, ...actions.map(([label, kind, act]) => button(label, async () => {
      if ((await act?.()) !== false) made.close();
    }, { kind }))));
  made.addEventListener("close", () => made.remove());
  document.body.append(made);
  made.showModal();
  return made;
}

export function confirmed(title, text, label) {
  return new Promise((resolve) => {
    const made = dialog(title, h("p", {}, text), ["Cancel", "quiet", () => resolve(false)], [label, "danger", () => resolve(true)]);
    made.addEventListener("close", () => resolve(false));
  });
}
