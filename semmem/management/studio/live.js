// The last requests as they happen: an outcome word, how long it took, how much was put in. Never what was said.

import { get, may } from "./api.js";
import { doctor } from "./commands.js";
import { button, chip, empty, failed, field, fill, h, loading, milliseconds, number, select, svg, table } from "./dom.js";
import { kind, meaning, OUTCOMES, spoken } from "./outcomes.js";

const EVERY_MS = 1000;
const KEPT = 1000;
const ROWS = 100;
const BARS = 100;
const BAR_WIDTH = 6;
const BAR_HEIGHT = 48;

let wanted = "";

export function live(place) {
  const counts = h("p", { class: "marks" }), strip = h("div"), note = h("div");
  const rows = table("Requests", "Requests, the newest first", ["When", "Outcome", "Took", "Memories", "Tokens"]);
  rows.place.hidden = true;
  let after = 0, paused = false, gone = false, untold = true, kept = [];
  const pause = button("Pause", () => { paused = !paused; pause.textContent = paused ? "Go on" : "Pause"; });
  const filter = field("Outcome", select(OUTCOMES, wanted, (value) => { wanted = value; draw(); }));
  fill(place, h("div", { class: "row spread" }, filter, pause), counts, strip, note, rows.place);
  fill(note, loading(2));

  function draw() {
    const shown = kept.filter((one) => !wanted || one.outcome === wanted);
    rows.draw(shown.slice(0, ROWS).map(row));
    rows.place.hidden = !shown.length;
    fill(counts, totals(kept).map(([word, times]) => chip(`${spoken(word)} ${number(times)}`, kind(word))));
    fill(strip, shown.length > 1 && latency(shown.slice(0, BARS)));
    fill(note, !kept.length ? empty("Nothing yet", "Requests through Envoy appear here as they end.", doctor())
      : !shown.length && empty(`None ended with “${spoken(wanted)}”`, `${meaning(wanted)}.`));
  }

  async function look() {
    try {
      const told = await get("/v1/activity", { after });
      if (gone || paused) return;
      if (told.last < after) kept = [];
      after = told.last;
      kept = [...told.requests.toReversed(), ...kept].slice(0, KEPT);
      if (told.requests.length || untold) draw();
      untold = false;
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

function totals(kept) {
  const times = new Map();
  for (const one of kept) times.set(one.outcome, (times.get(one.outcome) ?? 0) + 1);
  return [...times].sort((a, b) => b[1] - a[1]);
}

// One that somebody is known to have asked opens, for whoever may read what was in its prompt.
function row(one) {
  const when = new Date(one.time).toLocaleTimeString();
  return [one.id && may("read") ? h("a", { href: `#/requests//${encodeURIComponent(one.id)}` }, when) : when,
    [chip(spoken(one.outcome), kind(one.outcome)), " ", h("span", { class: "hint" }, meaning(one.outcome))],
    milliseconds(one.milliseconds), number(one.memories), number(one.tokens)];
}

// How long the last requests waited for semmem, the newest on the right; the highest bar is the longest.
function latency(requests) {
  const times = requests.map((one) => one.milliseconds), most = Math.max(...times);
  const sorted = times.toSorted((a, b) => a - b), at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const told = `The last ${number(times.length)}: half took at most ${milliseconds(at(0.5))}, 19 of 20 at most ${milliseconds(at(0.95))}, the longest ${milliseconds(most)}.`;
  const bars = svg("svg", { viewBox: `0 0 ${BARS * BAR_WIDTH} ${BAR_HEIGHT}`, class: "strip", preserveAspectRatio: "none", role: "img", "aria-label": told });
  requests.forEach((one, place) => {
    const height = Math.max(1, (one.milliseconds / Math.max(most, 1e-9)) * BAR_HEIGHT);
    bars.append(svg("rect", { x: (BARS - 1 - place) * BAR_WIDTH, y: BAR_HEIGHT - height, width: BAR_WIDTH - 1, height, class: kind(one.outcome) }));
  });
  return h("figure", { class: "latency" }, bars, h("figcaption", { class: "hint" }, told));
}
