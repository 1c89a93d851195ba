// What waits to be learnt from, how the last batches ended, and which replicas share the journal. No content, no users.

import { get } from "./api.js";
import { card, chip, empty, failed, fill, h, loading, moment, number, table } from "./dom.js";

const TITLES = ["Ended", "Result", "Begun by", "Turns", "Tries", "Said to learnt"];
const BAD = /fail|gave|late|refused/;
const TRIGGERS = { size: "enough turns", idle: "silence", end: "session ended", drift: "another topic" };

export const span = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);
const spoken = (word) => word.replaceAll("_", " ");
const kind = (word) => (BAD.test(word) ? "bad" : "good");

// Fills the place once, and gives what looks again without moving anything that somebody reads.
export function work(place) {
  const waiting = h("p", { class: "marks", "aria-live": "polite" }), words = h("p", { class: "marks" }), note = h("div");
  const rows = table("Batches", "Batches, the last that ended first", TITLES), replicas = h("div");
  rows.place.hidden = true;
  fill(note, loading(2));
  fill(place, card("Learning", waiting, words, note, rows.place), card("Replicas", replicas));
  return async () => {
    try {
      const [told, shared] = await Promise.all([get("/v1/batches"), get("/v1/replicas")]);
      fill(waiting, told.waiting.turns ? chip(`${number(told.waiting.turns)} turns wait, the oldest for ${span(told.waiting.lag_s)}`) : chip("nothing waits", "good"),
        told.live.map((batch) => chip(`${batch.state === "resting" ? `another try after ${moment(batch.until)}` : "being learnt from"}: ${number(batch.attempt)}. try`, batch.attempt > 1 ? "warn" : "")),
        told.live_total > told.live.length && chip(`and ${number(told.live_total - told.live.length)} more`));
      fill(words, h("span", {}, `In the last ${span(told.words_s)}:`),
        Object.entries(told.words).map(([word, times]) => chip(`${spoken(word)} ${number(times)}`, kind(word))), Object.keys(told.words).length ? null : "no batch ended");
      rows.place.hidden = !told.ended.length;
      fill(note, told.ended.length ? null : empty("No batch has ended yet", "Turns are learnt from together when there are enough of them, or when their session falls silent."));
      rows.draw(told.ended.map(row));
      fill(replicas, shared.replicas.length ? h("ul", { class: "trips" }, shared.replicas.map(replica))
        : h("p", { class: "hint" }, "This process alone: its journal is a file that nobody shares."));
    } catch (error) {
      for (const each of [waiting, words]) fill(each);
      rows.place.hidden = true;
      for (const each of [note, replicas]) if (!each.textContent.includes(error.message)) fill(each, failed(error));
    }
  };
}

const row = (batch) => [moment(batch.ended_at), chip(spoken(batch.word), kind(batch.word)), TRIGGERS[batch.trigger] ?? batch.trigger,
  batch.turns ? number(batch.turns) : "", number(batch.attempt), batch.lag_s === null ? "" : span(batch.lag_s)];

const replica = (one) => h("li", {}, chip(one.this ? "this one" : "lives", "good"), h("b", {}, one.id.slice(-8)),
  h("span", {}, [one.since && `since ${moment(one.since)}`, `last sign of life ${moment(one.seen_at)}`].filter(Boolean).join(", ")));
