// The whole way of a request: the block as the model sees it, then how it came to that: what was decided, which memories
// were looked at, and why each was kept or left out. Numbers are shown to whoever asks for them.

import { link, ofUser, post, who } from "./api.js";
import { whose } from "./commands.js";
import { button, card, chip, empty, field, fill, h, milliseconds, number, select, shownIn } from "./dom.js";
import { reason } from "./reasons.js";
import { thumbs } from "./thumbs.js";

const STRATEGIES = [["", "As configured"], ["hybrid", "Meaning and words"], ["semantic", "Meaning"], ["keyword", "Words"], ["recent", "The newest"]];

const NUMBERS = "Meaning: the cosine of question and memory, 1 at most. Words: how much they share. Score: what orders them, of both. Log-odds: how likely one is needed, 0 is as likely as not. One cut holds for all memories. It is lower for a profile, and where a question asks to be reminded and nothing would be shown.";

const UNEMBEDDED = {
  embedder_busy: "; by words, since the embedder was too slow or has too much to do",
  embedder_down: "; by words, since the embedder made no vector",
};

const asked = { query: "", session: "", strategy: "", limit: "", tokens: "" };
const shown = { numbers: false };

export function playground(place) {
  if (!who.user) {
    fill(place, whose("memories"));
    return;
  }
  const answer = h("div", { class: "found", "aria-live": "polite" });
  const query = h("textarea", { rows: 2, required: true, maxLength: 32000, placeholder: "What's my budget for the trip?" });
  query.value = asked.query;
  const session = h("input", { type: "text", maxLength: 1024, autocomplete: "off", value: asked.session, placeholder: "a new one" });
  const strategy = select(STRATEGIES, asked.strategy);
  const limit = h("input", { type: "number", min: "1", max: "50", value: asked.limit, placeholder: "as configured" });
  const tokens = h("input", { type: "number", min: "0", max: "16000", value: asked.tokens, placeholder: "as configured" });
  const ask = () => shownIn(answer, async () => {
    const began = performance.now();
    const told = await post("/v1/memory/preview", ofUser({
      query: asked.query, session_id: asked.session || undefined, strategy: asked.strategy || undefined, limit: asked.limit ? Number(asked.limit) : undefined,
      tokens_max: asked.tokens ? Number(asked.tokens) : undefined,
    }));
    return picture(told, performance.now() - began);
  });
  fill(place, h("form", {
    class: "card",
    onsubmit: (event) => {
      event.preventDefault();
      Object.assign(asked, { query: query.value.trim(), session: session.value.trim(), strategy: strategy.value, limit: limit.value, tokens: tokens.value });
      if (asked.query) ask();
    },
  },
  h("p", {}, "Ask as the user would. Nothing is stored, and no model is asked."),
  field("Question", query),
  h("div", { class: "filters settings" }, field("Session", session), field("Strategy", strategy), field("Memories at most", limit), field("Tokens at most", tokens)),
  h("button", { class: "button primary", type: "submit" }, "Run")), answer);
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); query.form.requestSubmit(); }
  });
  if (asked.query) ask();
}

function picture(told, took) {
  const kept = told.memories.filter((memory) => memory.kept);
  const isNew = kept.some((memory) => !memory.in_prompt);
  const request = told.request, searched = told.gate === "search";
  return [
    earlier(told),
    told.block ? card(told.shown_before.length ? "What is added" : "What the model sees", h("pre", { tabIndex: 0 }, told.block), h("p", { class: "hint" }, `${number(told.tokens)} tokens.`))
      : empty("The prompt stays as it is", kept.length && !isNew ? "What it needs is there already."
        : told.memories.length ? "No candidate was worth its place." : searched ? "Nothing was found for this question." : "It was not searched for memories."),
    card("Why", h("ol", { class: "way" },
      step("Question", told.query === asked.query ? "searched for as it is" : `searched for as “${told.query}”`, "done"),
      step("Decision", decision(told.gate, request), searched && request?.wants_memories !== false ? "done" : "stop"),
      step("Search", found(told), told.memories.length ? "done" : "stop"),
      step("Kept", `${number(kept.length)} of them`, kept.length ? "done" : "stop"),
      step("Block", `${number(told.tokens)} tokens, in ${milliseconds(took)} with this page's call`, told.tokens ? "done" : "stop"))),
    candidates(told.memories, request),
  ];
}

const SEARCHED = { hybrid: "by meaning and words", semantic: "by meaning", keyword: "by words", recent: "the newest" };
const found = (told) => `${SEARCHED[told.strategy] ?? told.strategy}${told.path ? "" : ", not searched"}: ${number(told.memories.length)} candidates${UNEMBEDDED[told.unembedded] ?? ""}`;

function decision(gate, request) {
  if (gate !== "search") return `not searched: ${gate.replaceAll("_", " ")}`;
  if (!request) return "searched, by how near memories are";
  return request.lists_profile ? "asks what is known of the user: all of it is listed" : request.wants_memories ? "memories may help" : "needs no memory";
}

function earlier(told) {
  if (!told.shown_before.length) return null;
  return card("In this session's prompts already",
    told.compacted && h("p", { class: "hint" }, "Together with the new block they have no room: they would go, and the new one says what is needed."),
    h("div", { class: "earlier" }, told.shown_before.map((block) => h("pre", { tabIndex: 0 }, block))));
}

const step = (title, text, state) => h("li", { class: state }, h("b", {}, title), h("span", {}, text));

function candidates(memories, request) {
  if (!memories.length) return null;
  const most = Math.max(1e-9, ...memories.map((memory) => memory.keyword));
  const best = Math.max(1e-9, ...memories.map((memory) => memory.score));
  const numbers = [];
  const toggle = button("", () => { shown.numbers = !shown.numbers; draw(); }, { kind: "quiet" });
  function draw() {
    toggle.textContent = shown.numbers ? "Hide the numbers" : "Show the numbers";
    toggle.setAttribute("aria-expanded", String(shown.numbers));
    for (const each of numbers) each.hidden = !shown.numbers;
  }
  const counted = (...parts) => { const made = h("div", {}, ...parts); numbers.push(made); return made; };
  const odds = (value) => (value === null || value === undefined ? "" : `, log-odds ${value}`);
  const made = card("Candidates", toggle, counted(h("p", { class: "hint" }, NUMBERS), request && h("p", { class: "hint" }, `Question: ${request.class.replaceAll("_", " ")}${odds(request.log_odds)}`)),
    h("ol", { class: "candidates" }, memories.map((memory) => h("li", { class: memory.kept ? "kept" : "cut" },
      h("p", { class: "content", dir: "auto" }, memory.content),
      h("p", { class: "marks" }, chip(memory.kept ? "kept" : "left out", memory.kept ? "good" : ""), memory.in_prompt && chip("in the prompt already"), chip(memory.type, memory.type),
        !(memory.in_prompt && memory.reason === "kept") && h("span", {}, reason(memory.reason)),
        memory.keyword > 0 && h("span", {}, "Shares words with the question.")),
      counted(h("dl", { class: "bars" }, bar("meaning", memory.cosine, memory.cosine), bar("words", memory.keyword, memory.keyword / most), bar("score", memory.score, memory.score / best)),
        h("p", { class: "hint" }, `${memory.tokens} tokens${odds(memory.log_odds)}`)),
      isConversation(memory) ? h("p", { class: "hint" }, h("a", { href: link("conversations", memory.id) }, "Read the conversation")) : memory.kept && thumbs(memory)))));
  draw();
  return made;
}

// Such a candidate has the id of its conversation, and is no memory that could be rated.
const isConversation = (memory) => memory.id.startsWith("conv_");

function bar(label, value, share) {
  const filled = h("span", { class: "filled" });
  filled.style.width = `${Math.round(100 * Math.min(1, Math.max(0, share)))}%`;
  return [h("dt", {}, label), h("dd", {}, h("span", { class: "bar", "aria-hidden": "true" }, filled), h("span", { class: "value" }, value.toFixed(3)))];
}
