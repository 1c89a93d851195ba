// One conversation: read as it went on, named, tagged, copied, removed. Whatever was said is shown as text.

import { call, get, link, may, ofUser, raw } from "./api.js";
import { button, chip, empty, failed, field, fill, h, loading, moment, number, save, toast } from "./dom.js";
import { finder, marker } from "./find.js";
import { leave } from "./leaving.js";
import { message, reveal } from "./message.js";

const PAGE = 50;

const path = (kept) => `/v1/conversations/${encodeURIComponent(kept.id)}`;
export const named = (kept) => kept.title.trim() || "Without a title";
const back = () => h("a", { href: link("conversations") }, "All conversations");

export function amount(kept) {
  const tokens = kept.tokens_in + kept.tokens_out;
  return `${number(kept.messages)} message${kept.messages === 1 ? "" : "s"}${tokens ? `, ${number(tokens)} tokens` : ""}`;
}

// `words`: those that it was found by, at whose newest message it opens then.
export function conversation(place, id, words = "") {
  const body = h("div", { class: "page" });
  let gone = false;
  fill(place, h("p", {}, back()), body);
  read();
  return () => { gone = true; };

  async function read() {
    fill(body, loading(6));
    try {
      const told = await get(path({ id }), ofUser({ limit: PAGE }));
      if (!gone) draw(told);
    } catch (error) {
      if (!gone) fill(body, error.status === 404 ? empty("No such conversation", "It was removed, its time is over, or it is somebody else's.") : failed(error, read));
    }
  }

  function draw(told) {
    const said = talk(told), top = head(told.conversation);
    const found = finder(words, {
      look: (text) => get(`${path({ id })}/matches`, ofUser({ q: text, limit: 500 })),
      go: said.go,
      title: () => top.querySelector("h2")?.textContent ?? "",
      kept: (text) => { if (!gone) history.replaceState(null, "", link("conversations", id, text)); },
    });
    fill(body, top, found.form, said.parts);
    scrollTo(0, 0);
    if (words) { found.begin(); return; }
    top.querySelector("h2").focus({ preventScroll: true });
  }
}

function head(kept) {
  const place = h("section", { class: "card", "aria-label": "About this conversation" });

  function show(focused) {
    fill(place, h("h2", { tabIndex: -1, dir: "auto", class: "title" }, named(kept)),
      h("p", { class: "marks" }, h("time", { datetime: kept.created_at }, `began ${moment(kept.created_at)}`),
        moment(kept.updated_at) !== moment(kept.created_at) && h("time", { datetime: kept.updated_at }, `last added to ${moment(kept.updated_at)}`),
        h("span", {}, amount(kept)), kept.project_id && chip(`project ${kept.project_id}`, "name"), kept.agent_id && chip(`agent ${kept.agent_id}`, "name"), kept.tags.map((tag) => chip(tag, "name"))),
      h("div", { class: "row acts" }, may("write") && button("Edit", edit, { kind: "quiet" }),
        button("Export Markdown", () => exported(kept, "markdown", "md"), { kind: "quiet" }), button("Export JSON", () => exported(kept, "json", "json"), { kind: "quiet" }),
        may("write") && button("Remove", () => removed(kept), { kind: "quiet danger" })));
    if (focused) place.querySelector("button").focus();
  }

  function edit() {
    const title = h("input", { value: kept.title, maxLength: 200, dir: "auto", autocomplete: "off" });
    const tags = h("input", { value: kept.tags.join(", "), dir: "auto", autocomplete: "off" });
    const form = h("form", {
      onsubmit: async (event) => {
        event.preventDefault();
        const told = tags.value.split(",").map((tag) => tag.trim()).filter(Boolean);
        try {
          kept = await call("PATCH", path(kept), { query: ofUser(), body: { title: title.value.trim() || undefined, tags: told } });
          show(true);
          toast("Changed.");
        } catch (error) {
          toast(error.message, { kind: "bad", seconds: 10 });
        }
      },
    }, field("Title", title), field("Tags", tags, "Separated by commas, at most 20."),
    h("div", { class: "row" }, h("button", { class: "button primary", type: "submit" }, "Save"), button("Cancel", () => show(true), { kind: "quiet" })));
    form.addEventListener("keydown", (event) => event.key === "Escape" && show(true));
    fill(place, form);
    title.focus();
  }

  show(false);
  return place;
}

async function exported(kept, format, ending) {
  try {
    save(await raw(`${path(kept)}/export`, ofUser({ format })), `conversation-${kept.created_at.slice(0, 10)}.${ending}`);
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
}

// The list that one comes back to tells what there is once it is gone.
function removed(kept) {
  location.hash = link("conversations");
  const query = ofUser();
  leave(kept.id, "Removed", named(kept), (keepalive) => call("DELETE", path(kept), { query, keepalive }), () => dispatchEvent(new Event("removed")));
}

// A page of messages, and those before and behind it as they are asked for. `go(match, text)` shows a message, from
// wherever it is, and marks what was looked for.
function talk(told) {
  const list = h("ol", { class: "talk", "aria-label": "Messages" }), count = h("p", { class: "count" });
  const earlier = button("Earlier messages", () => more(earlier, previous, true)), further = button("Further messages", () => more(further, next, false));
  let calls = new Map(), marked = marker(""), looked = "", previous = null, next = null, pages = [];

  function tell() {
    earlier.hidden = !previous;
    further.hidden = !next;
    const shown = number(list.children.length);
    fill(count, previous ? `${shown} messages are shown.` : next ? `The first ${shown} messages.` : list.children.length ? "That is all of it." : "Nothing is said in it yet.");
  }

  const made = (messages) => messages.map((one) => message(one, calls, marked));

  function draw() {
    calls = new Map();
    fill(list, pages.flatMap(made));
    tell();
  }

  function begin(page) {
    pages = [page.messages];
    [previous, next] = [page.previous_cursor, page.next_cursor];
    draw();
  }

  async function more(asked, cursor, before) {
    asked.disabled = true;
    try {
      const page = await get(path(told.conversation), ofUser({ limit: PAGE, cursor }));
      const added = made(page.messages);
      if (before) { pages.unshift(page.messages); previous = page.previous_cursor; list.prepend(...added); }
      else { pages.push(page.messages); next = page.next_cursor; list.append(...added); }
      tell();
      added.at(before ? -1 : 0)?.focus();
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
    asked.disabled = false;
  }

  const at = (match) => list.querySelector(`[data-id="${CSS.escape(match.id)}"]`);

  async function go(match, text) {
    if (text !== looked) { [looked, marked] = [text, marker(text)]; draw(); }
    list.querySelector(".here")?.classList.remove("here");
    if (!match) return null;
    if (!at(match)) begin(await get(path(told.conversation), ofUser({ limit: PAGE, cursor: match.cursor })));
    const said = at(match);
    if (!said) return null;
    said.classList.add("here");
    reveal(said);
    (said.querySelector("mark") ?? said).scrollIntoView({ block: "center" });
    return said;
  }

  begin(told);
  return { parts: [h("div", { class: "row" }, earlier), list, h("div", { class: "row" }, count, further)], go };
}
