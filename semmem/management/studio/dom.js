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

// A table; on a phone each row is a block, in which every cell says what it is. `draw` sets its rows anew.
export function table(label, caption, titles, rows = []) {
  const body = h("tbody", { role: "rowgroup" });
  const row = (cells) => h("tr", { role: "row" }, cells.map((cell, at) => h("td", { role: "cell", "data-label": titles[at] }, cell)));
  const draw = (told) => fill(body, told.map(row));
  draw(rows);
  const place = h("div", { class: "scroll fold", tabIndex: 0, role: "region", "aria-label": label },
    h("table", { role: "table" }, h("caption", { class: "hidden" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, titles.map((title) => h("th", { scope: "col", role: "columnheader" }, title)))), body));
  return { place, draw };
}

export const facts = (pairs) => h("dl", { class: "facts" }, pairs.map(([name, value]) =>
  h("div", {}, h("dt", {}, name), h("dd", {}, typeof value === "number" ? number(value) : String(value ?? "") || "none"))));

// What takes longer says so: nobody shall take it for all there is.
const SLOW_MS = 3000;
export function loading(lines = 3) {
  const said = h("p", { class: "hidden" }, "Loading");
  const made = h("div", { class: "loading", "aria-busy": "true" }, said, ...Array.from({ length: lines }, () => h("div", { class: "bone", "aria-hidden": "true" })));
  setTimeout(() => {
    said.className = "hint";
    said.textContent = "No answer yet. A part that does not answer is named here as soon as semmem gives it up.";
  }, SLOW_MS);
  return made;
}

export const empty = (title, text, ...actions) =>
  h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), text && h("p", {}, text), ...actions);

// What is broken, by what the problem's own words name, and what to do about it.
const BROKEN = [
  [/cannot write to its disk/, "There is no room on a disk", "Free some room where the part below keeps its files; semmem goes on by itself."],
  [/cannot be reached. Is it running/, "semmem does not answer", "Start it, or look at the network between it and this page."],
  [/within a minute/, "semmem does not answer", "It runs, and something that it needs hangs: look at its log, and at its parts on the page Engine."],
  [/\bstore\b/, "The store does not answer", "Look whether the store runs and can be reached from semmem. Requests go on without memories meanwhile."],
  [/\bjournal\b/, "The journal does not answer", "Look at its disk, or at its database. Nothing new is learnt meanwhile."],
  [/\bembedder\b/, "The embedder does not answer", "Look at its model, or at its server. Memories are found by words meanwhile."],
  [/language model/, "The language model does not answer", "Look at its address and key in external_models."],
];
const STATUSES = {
  403: ["This token may not see this", "Sign in with one whose role may."],
  429: ["These are too many calls", "Wait a moment."],
};

function broken(error) {
  const known = BROKEN.find(([words]) => words.test(error.message));
  return known?.slice(1) ?? STATUSES[error.status] ?? ["This could not be read", "Try again; where that does not help, semmem's log says more."];
}

// Something that was asked for and is not known: nobody may take it for nothing.
export function failed(error, again) {
  const [title, advice] = broken(error);
  return h("div", { class: "failed", role: "alert" }, h("p", { class: "empty-title" }, title), h("p", { class: "advice" }, advice),
    h("p", { class: "detail" }, "semmem says: ", h("q", {}, error.message)), again && button("Try again", again));
}

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
