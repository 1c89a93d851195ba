// The last requests as they happen: an outcome word, how long it took, how much was put in. Never what was said.

import { get } from "./api.js";
import { button, chip, empty, failed, fill, h, loading, milliseconds, number } from "./dom.js";

const EVERY_MS = 1000;
const ROWS = 100;
const GOOD = new Set(["injected"]);
const BAD = /timeout|error|unavailable|failed|overload|busy|down/;

export function live(place) {
  const counts = h("p", { class: "marks" });
  const rows = h("tbody");
  const table = h("table", {}, h("caption", { class: "hidden" }, "Requests, the newest first"),
    h("thead", {}, h("tr", {}, ["When", "Outcome", "Took", "Memories", "Tokens"].map((title) => h("th", { scope: "col" }, title)))), rows);
  const note = h("div");
  const box = h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Requests", hidden: true }, table);
  let after = 0, paused = false, gone = false, untold = true;
  const totals = new Map();
  const pause = button("Pause", () => { paused = !paused; pause.textContent = paused ? "Go on" : "Pause"; });
  fill(place, h("div", { class: "row" }, pause), counts, note, box);
  fill(note, loading(2));

  // What stands in the place of requests, as long as there are none.
  function tell() {
    box.hidden = !rows.children.length;
    fill(note, box.hidden && empty("Nothing yet", "Requests through Envoy appear here as they end."));
  }

  async function look() {
    try {
      const told = await get("/v1/activity", { after });
      if (gone || paused) return;
      after = told.last;
      if (untold) { untold = false; tell(); }
      if (!told.requests.length) return;
      for (const one of told.requests) {
        totals.set(one.outcome, (totals.get(one.outcome) ?? 0) + 1);
        rows.prepend(h("tr", {}, h("td", {}, new Date(one.time).toLocaleTimeString()), h("td", {}, chip(one.outcome.replaceAll("_", " "), kind(one.outcome))),
          h("td", {}, milliseconds(one.milliseconds)), h("td", {}, number(one.memories)), h("td", {}, number(one.tokens))));
      }
      while (rows.children.length > ROWS) rows.lastChild.remove();
      if (box.hidden) tell();
      fill(counts, [...totals].sort((a, b) => b[1] - a[1]).map(([word, times]) => chip(`${word.replaceAll("_", " ")} ${number(times)}`, kind(word))));
    } catch (error) {
      if (gone) return;
      untold = true;
      if (!note.textContent.includes(error.message)) fill(note, failed(error));
    }
  }

  look();
  const timer = setInterval(() => paused || look(), EVERY_MS);
  return () => { gone = true; clearInterval(timer); };
}

const kind = (outcome) => (GOOD.has(outcome) ? "good" : BAD.test(outcome) ? "bad" : "");
