// What semmem runs on, whether that works, its last hour, and another embedding model. No content, no users.

import { call, get, may, ofUser, post, who } from "./api.js";
import { chart } from "./chart.js";
import { doctor } from "./commands.js";
import { button, card, chip, confirmed, empty, facts, failed, fill, h, milliseconds, moment, number, shownIn, toast } from "./dom.js";
import { work } from "./work.js";

const EVERY_MS = 3000;
const SAMPLED_MS = 20_000;
const STATES = {
  none: "nothing to do", filling: "being filled", paused: "paused", waiting: "waiting for other replicas", kept: "switched; the former one is kept", dropping: "the former one is being dropped",
};
const NAMES = { signature: "model", source: "former collection", target: "new collection" };
const NO_MODEL = "No language model: facts are found by rules, and cost no tokens. A model with the role memory_extraction costs about one call for each batch of turns.";
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

export function engine(place) {
  const status = h("div"), trips = h("div"), hour = h("div"), learning = h("div", { class: "page" }), reindex = h("div"), configuration = h("div");
  const statusTold = async () => statusOf(await get("/v1/status"));
  const hourTold = async () => hourCard(await get("/v1/metrics/history"));
  const reindexTold = () => get("/v1/memory/reindex");
  const loadReindex = () => shownIn(reindex, async () => reindexCard(await reindexTold(), loadReindex), 2);
  fill(place, card("What it runs on", status, h("div", { class: "row tests" },
    button("Test every connection", () => shownIn(trips, async () => tripsList(await get("/v1/health")), 2), { kind: "primary" }),
    may("read") && button("Test a search", () => shownIn(trips, searched, 1))), trips),
  hour, learning, reindex, configuration);
  const lookAtWork = work(learning);
  shownIn(status, statusTold, 3);
  shownIn(hour, hourTold, 3);
  lookAtWork();
  loadReindex();
  fill(configuration, h("details", { class: "card", ontoggle: (event) => event.target.open && shownIn(event.target.lastChild,
    async () => h("pre", { tabIndex: 0 }, JSON.stringify(await get("/v1/config"), null, 2))) },
  h("summary", {}, "Configuration in effect, without its secrets"), h("div")));
  // What cannot be read any more does not stay as it was; a card that nothing happens to is not drawn anew.
  const again = async (place, work) => {
    try {
      const cards = await work();
      if (cards) fill(place, cards);
    } catch (error) {
      if (place.textContent.includes(error.message)) return;
      fill(place, failed(error));
    }
  };
  const timers = [setInterval(() => again(hour, hourTold), SAMPLED_MS), setInterval(() => {
    lookAtWork();
    again(status, statusTold);
    again(reindex, async () => {
      const told = await reindexTold();
      return (told.state !== "none" || reindex.querySelector(".failed")) && reindexCard(told, loadReindex);
    });
  }, EVERY_MS)];
  return () => timers.forEach(clearInterval);
}

function statusOf(told) {
  const { store, embedding, journal, models, deployment } = told;
  return [
    h("p", { class: "marks" }, Object.entries(told.components).map(([name, good]) => chip(`${name}: ${good ? "ready" : "not ready"}`, good ? "good" : "bad"))),
    facts([["version", told.version], ["running since", moment(told.started_at)], ["store", store.backend], ["embedded by", embedding.source], ["dimensions", embedding.dimension], ["users in memory", store.hot_users], ["their memories", store.hot_memories],
      ["journal", journal.kind], ["turns being written", journal.waiting], ["language models", models.join(", ")], ["rerank", told.rerank ? "on" : "off"], ["replicas, as configured", deployment.replicas]]),
    models.length ? null : h("p", { class: "hint" }, NO_MODEL),
  ].filter(Boolean);
}

// Of a process that began lately the hour is empty on the left.
function hourCard({ samples, samples_max, interval_s }) {
  if (!samples.length) return card("The last hour", empty("No sample yet", `The first comes ${interval_s} seconds after the start.`, doctor("Whether all of it works, meanwhile:")));
  const places = [...Array(samples_max - samples.length).fill(null), ...samples], newest = Date.parse(samples.at(-1).time);
  const times = places.map((sample, place) => CLOCK.format(sample ? Date.parse(sample.time) : newest - 1000 * interval_s * (samples_max - 1 - place)));
  const one = (key, name, shape, tone) => ({ name, shape, tone, values: places.map((sample) => sample?.[key] ?? null) });
  const each = `in ${number(interval_s)} s`, bytes = (value) => `${number(Math.round(value / 1e6))} MB`;
  return card("The last hour", h("p", { class: "hint" }, `Of this process since its start, a sample every ${number(interval_s)} seconds.`), h("div", { class: "charts" },
    chart(`Requests ${each}`, times, [one("requests", "requests", "columns", "a")], number),
    chart("Time added to a request", times, [one("p95_ms", "p95", "curve", "b"), one("p50_ms", "p50", "curve", "a")], milliseconds),
    chart("Turns waiting to be learnt", times, [one("waiting", "waiting", "curve", "a")], number),
    chart(`Turns learnt ${each}`, times, [one("learnt", "learnt", "columns", "a"), one("failed", "failed", "columns", "bad")], number),
    chart("Memory of the process", times, [one("memory_bytes", "resident", "curve", "a")], bytes)));
}

const trip = (name, working, said) => h("li", {}, chip(working ? "works" : "fails", working ? "good" : "bad"), h("b", {}, name), h("span", {}, said));
const tripsList = (told) => h("ul", { class: "trips" }, Object.entries(told.parts).map(([name, part]) =>
  trip(name, part.working, part.working ? milliseconds(part.latency_ms) : part.error)));

// Of the user who is looked at, or of one of whom nothing is known: embedded, looked for and decided about as a request.
async function searched() {
  const began = performance.now(), told = await post("/v1/memory/preview", ofUser({ query: "What is known about my work and my home?", ...(who.bound || who.user ? {} : { user_id: "nobody" }) }));
  return h("ul", { class: "trips" }, trip("search", !told.unembedded, `${number(told.memories.length)} candidates in ${milliseconds(performance.now() - began)}${told.unembedded ? ", by words alone" : ""}`));
}

function reindexCard(told, again) {
  const { state, changed_at: _, ...rest } = told;
  const shown = [...Object.entries(rest).map(([key, value]) => [NAMES[key] ?? key.replaceAll("_", " "), value])];
  const progress = told.users ? h("progress", { max: told.users, value: told.users_done, "aria-label": "Users whose vectors are made" }) : null;
  const act = (work) => async () => {
    try { await work(); } catch (error) { toast(error.message, { kind: "bad", seconds: 10 }); }
    again();
  };
  const begin = act(async () => {
    if (await confirmed("Make every vector anew?", "Requests are served meanwhile; where a vector is missing, by words.", "Reindex")) await post("/v1/memory/reindex", { force: true });
  });
  const drop = act(async () => {
    if (await confirmed("Drop the former collection?", "With it goes the way back.", "Drop")) await call("DELETE", "/v1/memory/reindex");
  });
  return card("Embedding model and reindex", h("p", { class: "marks" }, chip(STATES[state] ?? state, state === "none" ? "" : "good")), progress, facts(shown),
    h("div", { class: "row" },
      state === "none" && button("Reindex …", begin),
      state === "paused" && button("Go on", act(() => post("/v1/memory/reindex", {}))),
      state === "kept" && button("Drop the former collection …", drop, { kind: "danger" })));
}
