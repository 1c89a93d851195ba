// What was said, word for word, where that is recorded: a list that is searched as one types. Operators see how many.

import { get, link, may, ofUser, who } from "./api.js";
import { curl, setting, whose } from "./commands.js";
import { amount, conversation, named } from "./conversation.js";
import { button, chip, choices, debounced, empty, failed, field, fill, h, loading, moment, number, shownIn, unread } from "./dom.js";
import { isLeaving } from "./leaving.js";

const PAGE = 20;
const ANY = { q: "", project: "", tag: "", since: "" };

const asked = { ...ANY };
// The page of the list that was looked at, so that the way back from a conversation leads there.
const seen = { user: "", cursors: [null], at: 0, read: "" };

export function conversations(place, id, words) {
  if (id && may("read") && who.user) {
    seen.read = id;
    return conversation(place, id, words);
  }
  const figures = h("div"), offers = h("div"), list = h("div", { class: "list" }), heard = h("p", { class: "hidden", "aria-live": "polite" });
  if (!may("read") || !who.user) {
    fill(place, figures, may("read") ? whose("conversations")
      : h("p", { class: "hint" }, "An operator sees how many there are. What was said is for whoever said it, and for those who may read memories."));
    if (may("operate")) shownIn(figures, async () => everybodys(await get("/v1/conversations/counts")), 1);
    return undefined;
  }
  if (seen.user !== who.user) Object.assign(seen, { user: who.user, cursors: [null], at: 0, read: "" });
  let asking = 0;

  async function load() {
    const mine = (asking += 1);
    if (!list.children.length) fill(list, loading(5));
    try {
      const told = await get("/v1/conversations", ofUser({
        q: asked.q, project_id: asked.project, tag: asked.tag, since: asked.since && new Date(`${asked.since}T00:00`).toISOString(), limit: PAGE, cursor: seen.cursors[seen.at],
      }));
      if (mine !== asking) return;
      if (!told.conversations.length && seen.at > 0) { seen.at -= 1; load(); return; }
      seen.cursors[seen.at + 1] = told.next_cursor;
      draw(told);
    } catch (error) {
      if (mine === asking) fill(list, failed(error, load));
    }
  }

  const again = () => { seen.cursors = [null]; seen.at = 0; return load(); };
  const turn = (by) => { seen.at += by; load().then(() => list.querySelector(".count")?.focus()); };
  const only = (tag) => { asked.tag = inputs.tag.value = tag; again().then(() => list.querySelector(".count")?.focus()); };

  function draw(told) {
    fill(heard, told.conversations.length ? `${number(told.conversations.length)} conversations${told.next_cursor ? ", and more" : ""}` : "No conversation");
    if (!told.conversations.length) {
      fill(list, Object.values(asked).some(Boolean) ? empty("Nothing like that", "No conversation matches the search and the filters. A search looks for each word in the title, or for all of them in one message.", button("Clear them", clear))
        : nothing(told.recording));
      return;
    }
    const first = seen.at * PAGE + 1;
    fill(list, told.recording ? null : off(),
      h("p", { class: "count", tabIndex: -1 }, `${number(first)} to ${number(first + told.conversations.length - 1)}, those last added to first`),
      h("ul", { class: "memories" }, told.conversations.map((kept) => item(kept, only))),
      (seen.at > 0 || told.next_cursor) && h("div", { class: "row" },
        button("Newer", () => turn(-1), { disabled: seen.at === 0 }), button("Older", () => turn(1), { disabled: !told.next_cursor })));
    list.querySelector(`[data-id="${CSS.escape(seen.read)}"] a`)?.focus();
    seen.read = "";
  }

  const input = (name, props) => h("input", { value: asked[name], autocomplete: "off", oninput: debounced((event) => { asked[name] = event.target.validity.valid ? event.target.value.trim() : ""; again(); }), ...props });
  const inputs = {
    q: input("q", { type: "search", maxLength: 500, placeholder: "words that were said" }),
    project: input("project", { type: "search", maxLength: 256, placeholder: "every project", spellcheck: "false" }),
    tag: input("tag", { type: "search", maxLength: 64, placeholder: "every tag" }),
    since: input("since", { type: "date", min: "1970-01-01", max: "9999-12-31" }),
  };
  function clear() {
    Object.assign(asked, ANY);
    for (const each of Object.values(inputs)) each.value = "";
    again();
    inputs.q.focus();
  }

  fill(place, figures, h("div", { class: "filters four", role: "search" }, field("Search", inputs.q), field("Project", inputs.project), field("Tag", inputs.tag), field("Since", inputs.since)), offers, heard, list);
  const count = () => get("/v1/conversations/counts", ofUser()).then((told) => fill(figures, told.conversations > 0 && counted(told)), () => fill(figures, unread("The figures")));
  get("/v1/conversations/facets", ofUser()).then((told) => {
    choices(inputs.project, told.projects.map((each) => [each.project_id, many(each)]));
    choices(inputs.tag, told.tags.map((each) => [each.tag, many(each)]));
  }, () => fill(offers, unread("The projects and tags that there are")));
  const lookAgain = () => { count(); load(); };
  lookAgain();
  addEventListener("removed", lookAgain);
  return () => removeEventListener("removed", lookAgain);
}

const many = (each) => `${number(each.conversations)} conversation${each.conversations === 1 ? "" : "s"}`;

function item(kept, only) {
  return h("li", { class: "memory", "data-id": kept.id, hidden: isLeaving(kept.id) },
    h("p", { class: "content" }, h("a", { href: link("conversations", kept.id, asked.q), dir: "auto" }, named(kept))),
    h("p", { class: "marks" }, h("time", { datetime: kept.updated_at }, moment(kept.updated_at)), h("span", {}, amount(kept)),
      kept.project_id && chip(`project ${kept.project_id}`, "name"),
      kept.tags.map((tag) => h("button", { type: "button", class: "chip name", title: "Only those with this tag", onclick: () => only(tag) }, tag))));
}

const nothing = (recording) => (recording ? empty("No conversations yet", "What is said through Envoy, and answered, appears here.", imported())
  : empty("Conversations are not recorded", "Whoever runs semmem can set conversations.enabled: true in its configuration. From then on what users, models and tools say is kept, word for word, for conversations.retention_s.", may("operate") && setting("conversations")));

const imported = () => may("write") && who.user && curl("/v1/conversations", ofUser({ messages: [{ role: "user", content: "Hello" }, { role: "assistant", content: "Hello!" }] }), "Or import one by a command");

const off = () => h("p", { class: "hint" }, "Recording is off: these were recorded earlier, or imported.");

const figure = (value, label) => h("div", { class: "figure" }, h("b", {}, number(value)), h("span", {}, label));

const counted = (told, users) => h("div", { class: `figures ${users ? "" : "four"}` }, figure(told.conversations, "conversations"), figure(told.messages, "messages"), users,
  figure(told.tokens_in, "tokens in"), figure(told.tokens_out, "tokens out"));

const everybodys = (told) => (told.conversations ? [told.recording ? null : off(), counted(told, figure(told.users, "users with any"))] : nothing(told.recording));
