// Why did it say that? A user's last requests: which memories were in a prompt, why, and what was learnt from the turn.

import { get, link, ofUser, who } from "./api.js";
import { doctor, whose } from "./commands.js";
import { button, card, chip, empty, facts, failed, field, fill, h, loading, milliseconds, moment, number, select, shownIn, table } from "./dom.js";
import { kind, meaning, OUTCOMES, spoken } from "./outcomes.js";
import { reason } from "./reasons.js";
import { thumbs } from "./thumbs.js";

const SHOWN = 100;
const PASSED = "It is not kept, or not any more: requests are kept for some days (request_log.days), and what is erased goes with them.";
const STEPS = { reading: "understanding it", journalling: "its turn to the journal", finding: "finding memories", rewriting: "rewriting it" };

let wanted = "";

export function requests(place, id) {
  if (id) return one(place, id);
  if (!who.user && !who.bound) {
    fill(place, whose("requests"));
    return undefined;
  }
  const found = h("div", { "aria-live": "polite" });
  const look = () => shownIn(found, async () => listed((await get("/v1/requests", ofUser({ outcome: wanted, limit: SHOWN }))).requests), 4);
  const filter = field("Outcome", select(OUTCOMES, wanted, (value) => { wanted = value; look(); }));
  fill(place, h("div", { class: "row spread" }, filter, button("Look again", look)), found);
  look();
  return undefined;
}

function listed(found) {
  if (!found.length) {
    return wanted ? empty(`None ended with “${spoken(wanted)}”`, `${meaning(wanted)}.`)
      : empty("No request yet", "Those that come through Envoy for this user are listed here, whichever replica they meet, for some days.", doctor());
  }
  return table("Requests", "Requests, the newest first", ["When", "Outcome", "Took", "Memories", "Tokens", "Model"], found.map((each) => [
    h("a", { href: link("requests", each.id) }, moment(each.time)), chip(spoken(each.outcome), kind(each.outcome)), milliseconds(each.milliseconds),
    number(each.memories), number(each.tokens), each.model || "unknown"])).place;
}

function one(place, id) {
  const back = h("a", { href: link("requests") }, "All requests"), body = h("div", { class: "page" });
  let gone = false;
  fill(place, h("p", {}, back), body);
  read();
  return () => { gone = true; };

  async function read() {
    fill(body, loading(5));
    try {
      const told = await get(`/v1/requests/${encodeURIComponent(id)}`);
      if (gone) return; // whoever went on looks at another page's user
      lookAt(told.user_id, id);
      back.href = link("requests");
      fill(body, summary(told), prompt(told), leftOut(told), learnt(told));
      body.querySelector("h2").focus({ preventScroll: true });
    } catch (error) {
      if (!gone) fill(body, error.status === 404 ? empty("No such request", PASSED) : failed(error, read));
    }
  }
}

// Whoever came here by the request alone looks at its user from here on.
function lookAt(user, id) {
  if (who.bound) return;
  who.user = user;
  const picker = document.getElementById("user");
  if (picker) picker.value = user;
  history.replaceState(null, "", link("requests", id));
}

function summary(told) {
  const known = [["When", moment(told.time)], ["Its id", told.id], ["API", told.api], ["Model asked for", told.model || "unknown"], ["Took, in semmem", milliseconds(told.milliseconds)],
    ["Of that", steps(told.steps)], ["Added to the prompt", `${number(told.tokens)} tokens`], ["Its answer", answered(told.answer)], ["Taken to be about", told.purpose], ["Project", told.project_id], ["Session", told.session_id], ["Trace", told.trace_id]];
  return h("section", { class: "card", "aria-label": "How it ended" },
    h("h2", { tabIndex: -1 }, chip(spoken(told.outcome), kind(told.outcome)), ` ${meaning(told.outcome)}`),
    facts(known.filter(([, value]) => value)));
}

function steps(taken) {
  return Object.entries(taken).map(([name, each]) => `${STEPS[name] ?? name} ${milliseconds(each)}`).join(", ");
}

function answered(answer) {
  if (!answer) return "not seen to its end, or not observed";
  const read = answer.tokens_in === null ? [] : [`${number(answer.tokens_in)} tokens read${answer.cached_tokens === null ? "" : `, ${number(answer.cached_tokens)} of them from the model's cache`}`];
  const written = answer.tokens_out === null ? [] : [`${number(answer.tokens_out)} written`];
  return [`${spoken(answer.ending)} after ${milliseconds(answer.milliseconds)}`, ...read, ...written].join(", ");
}

function prompt(told) {
  const gone = told.gone > 0 && h("p", { class: "hint" }, `${number(told.gone)} more ${told.gone === 1 ? "was" : "were"} in it and ${told.gone === 1 ? "is" : "are"} no more.`);
  return card("In its prompt",
    told.in_prompt.length ? h("ol", { class: "candidates" }, told.in_prompt.map(inPrompt)) : h("p", {}, told.gone ? "Nothing that is still known." : "No memory."),
    gone, told.in_prompt.length > 0 && h("p", { class: "hint" }, "They are shown as they are now."));
}

function inPrompt(memory) {
  const odds = memory.log_odds === null ? null : h("span", {}, `log-odds ${memory.log_odds}`);
  return h("li", { class: "kept" }, h("p", { class: "content", dir: "auto" }, memory.content),
    h("p", { class: "marks" }, chip(memory.type, memory.type), h("span", {}, why(memory)), memory.is_new && odds), thumbs(memory));
}

function why(memory) {
  if (!memory.is_new) return "an earlier request of the session was shown it, and it stays in the prompt";
  if (memory.log_odds === null) return "found for this request";
  return memory.log_odds >= 0 ? "found for this request: probably needed" : memory.log_odds >= -1.5 ? "found for this request: may well help" : "found for this request: on the chance that it helps";
}

function leftOut(told) {
  return told.left_out.length > 0 && card("Left out", h("ol", { class: "candidates" }, told.left_out.map((memory) =>
    h("li", {}, h("p", { class: "content", dir: "auto" }, memory.content), h("p", { class: "marks" }, chip(memory.type, memory.type), h("span", {}, reason(memory.reason)))))),
  h("p", { class: "hint" }, "The best of what was near enough. The Playground has every candidate."));
}

function learnt(told) {
  return card("Learnt from its turn", told.learnt.length
    ? h("ol", { class: "candidates" }, told.learnt.map((memory) => h("li", { class: "kept" }, h("p", { class: "content", dir: "auto" }, memory.content),
      h("p", { class: "marks" }, chip(memory.type, memory.type), memory.status !== "active" && chip(memory.status, "warn")))))
    : h("p", {}, "Nothing yet. What is worth remembering is learnt after the answer."));
}
