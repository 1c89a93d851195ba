// One conversation: read as it went on, named, tagged, copied, removed. Whatever was said is shown as text.

import { call, get, link, may, ofUser, raw } from "./api.js";
import { button, chip, confirmed, empty, failed, field, fill, h, loading, moment, number, save, toast } from "./dom.js";
import { message } from "./message.js";

const PAGE = 50;

const path = (kept) => `/v1/conversations/${encodeURIComponent(kept.id)}`;
export const named = (kept) => kept.title.trim() || "Without a title";
const back = () => h("a", { href: link("conversations") }, "All conversations");

export function amount(kept) {
  const tokens = kept.tokens_in + kept.tokens_out;
  return `${number(kept.messages)} message${kept.messages === 1 ? "" : "s"}${tokens ? `, ${number(tokens)} tokens` : ""}`;
}

export function conversation(place, id) {
  const body = h("div", { class: "page" });
  fill(place, h("p", {}, back()), body);
  read();

  async function read() {
    fill(body, loading(6));
    try {
      draw(await get(path({ id }), ofUser({ limit: PAGE })));
    } catch (error) {
      fill(body, error.status === 404 ? empty("No such conversation", "It was removed, its time is over, or it is somebody else's.") : failed(error, read));
    }
  }

  function draw(told) {
    const top = head(told.conversation);
    fill(body, top, talk(told));
    scrollTo(0, 0);
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

async function removed(kept) {
  const sure = await confirmed("Remove this conversation?", [h("bdi", {}, `“${named(kept)}”`), ` with ${amount(kept)}. There is no way back. Memories that were learnt from it stay.`], "Remove");
  if (!sure) return;
  try {
    const told = await call("DELETE", path(kept), { query: ofUser() });
    toast(`Removed, with ${number(told.messages)} message${told.messages === 1 ? "" : "s"}.`);
    location.hash = link("conversations");
  } catch (error) {
    toast(`Not removed: ${error.message}`, { kind: "bad", seconds: 10 });
  }
}

// The first page of messages, and the further ones below it as they are asked for.
function talk(told) {
  const calls = new Map();
  const list = h("ol", { class: "talk", "aria-label": "Messages" }), count = h("p", { class: "count" });
  const more = button("Further messages", further);
  let cursor = told.next_cursor, shown = 0;

  function add(messages) {
    const made = messages.map((one) => message(one, calls));
    list.append(...made);
    shown += made.length;
    more.hidden = !cursor;
    fill(count, cursor ? `The first ${number(shown)} messages.` : "That is all of it.");
    return made;
  }

  async function further() {
    more.disabled = true;
    try {
      const next = await get(path(told.conversation), ofUser({ limit: PAGE, cursor }));
      cursor = next.next_cursor;
      add(next.messages)[0]?.focus();
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
    more.disabled = false;
  }

  add(told.messages);
  return [list, h("div", { class: "row" }, count, more)];
}
