// What semmem runs on, whether that works, and another embedding model. No content, no users.

import { call, get, post } from "./api.js";
import { button, card, chip, confirmed, failed, fill, h, milliseconds, moment, number, shownIn, toast } from "./dom.js";
import { work } from "./work.js";

const EVERY_MS = 3000;
const STATES = {
  none: "nothing to do", filling: "being filled", paused: "paused", waiting: "waiting for other replicas", kept: "switched; the former one is kept", dropping: "the former one is being dropped",
};

export function engine(place) {
  const status = h("div"), learning = h("div", { class: "page" }), trips = h("div"), reindex = h("div"), configuration = h("div");
  const loadStatus = () => shownIn(status, async () => statusCards(await get("/v1/status")), 4);
  const loadReindex = () => shownIn(reindex, async () => reindexCard(await get("/v1/memory/reindex"), loadReindex), 2);
  fill(place, status, learning, card("A round trip to everything", h("p", { class: "hint" }, "Each part is asked once, now."),
    button("Test now", () => shownIn(trips, async () => tripsList(await get("/v1/health")), 2), { kind: "primary" }), trips),
  reindex, configuration);
  const lookAtWork = work(learning);
  loadStatus();
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
  const timer = setInterval(() => {
    lookAtWork();
    again(status, async () => statusCards(await get("/v1/status")));
    again(reindex, async () => {
      const told = await get("/v1/memory/reindex");
      return (told.state !== "none" || reindex.querySelector(".failed")) && reindexCard(told, loadReindex);
    });
  }, EVERY_MS);
  return () => clearInterval(timer);
}

const fact = (key, value) => [h("dt", {}, key), h("dd", {}, value === null || value === undefined || value === "" ? "none" : String(value))];

function facts(told, skip = []) {
  return h("dl", { class: "facts" }, Object.entries(told).filter(([key, value]) => !skip.includes(key) && (value === null || typeof value !== "object"))
    .map(([key, value]) => fact(key.replaceAll("_", " "), typeof value === "number" ? number(value) : value)));
}

function statusCards(told) {
  const parts = Object.entries(told.components).map(([name, good]) => chip(`${name}: ${good ? "ready" : "not ready"}`, good ? "good" : "bad"));
  return h("div", { class: "cards" },
    card("Parts", h("p", { class: "marks" }, parts), h("p", { class: "hint" }, `Version ${told.version}, since ${moment(told.started_at)}`)),
    card("Store", facts(told.store)), card("Embedding", facts(told.embedding)), card("Journal and queue", facts(told.journal)),
    card("Models", told.models.length ? h("ul", {}, told.models.map((model) => h("li", {}, typeof model === "string" ? model : Object.values(model).join(" · "))))
      : h("p", { class: "hint" }, "None: facts are found by rules, and cost no tokens. A model with the role memory_extraction costs about one call for each batch of turns."),
    fact_row("rerank", told.rerank ? "on" : "off")),
    card("Deployment", facts(told.deployment)));
}

const fact_row = (key, value) => h("dl", { class: "facts" }, fact(key, value));

function tripsList(told) {
  return h("ul", { class: "trips" }, Object.entries(told.parts).map(([name, part]) => h("li", {},
    chip(part.working ? "works" : "fails", part.working ? "good" : "bad"), h("b", {}, name), h("span", {}, part.working ? milliseconds(part.latency_ms) : part.error))));
}

function reindexCard(told, again) {
  const state = told.state;
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
  return card("Vectors of another model", h("p", { class: "marks" }, chip(STATES[state] ?? state, state === "none" ? "" : "good")), progress, facts(told, ["state", "changed_at"]),
    h("div", { class: "row" },
      state === "none" && button("Reindex …", begin),
      state === "paused" && button("Go on", act(() => post("/v1/memory/reindex", {}))),
      state === "kept" && button("Drop the former collection …", drop, { kind: "danger" })));
}
