// One memory of a list: a line, and below it, when it is opened, its past and what can be done with it.

import { ApiError, call, get, link, may, ofUser } from "./api.js";
import { changes } from "./changes.js";
import { age, button, chip, day, field, fill, h, moment, select, shownIn, toast, unread } from "./dom.js";
import { isLeaving, leave } from "./leaving.js";
import { thumbs } from "./thumbs.js";

const TYPES = [["semantic", "Semantic"], ["episodic", "Episodic"], ["procedural", "Procedural"], ["reflective", "Reflective"]];

const path = (memory) => `/v1/memory/${encodeURIComponent(memory.id)}`;

// One line; what more there is to read and to do opens below it.
export function memoryItem(memory, changed, opened = false) {
  const place = h("li", { class: `memory dense ${memory.status}`, "data-id": memory.id, hidden: isLeaving(memory.id) });
  // Whose it is: another user may be looked at by the time that it is forgotten.
  const whose = ofUser();
  const more = h("div", { class: "more" }), details = h("div", { class: "details", id: `details-${memory.id}`, hidden: !opened });
  const line = h("button", { type: "button", class: "line", "aria-expanded": String(opened), "aria-controls": details.id, onclick: () => open(details.hidden), onkeydown: pressed });
  const show = () => {
    fill(line, told(memory));
    fill(details, reading(memory, { edit, past, forget, release, undo }), more);
  };

  function open(wanted) {
    details.hidden = !wanted;
    line.setAttribute("aria-expanded", String(wanted));
  }

  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Delete" && may("write")) forget();
    else if (event.key.toLowerCase() === "e" && may("write")) { event.preventDefault(); open(true); edit(); }
  }

  const close = () => { show(); line.focus(); };
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (!details.querySelector(".edit")) open(false);
    close();
  });

  function edit() {
    const content = h("textarea", { rows: 3, maxLength: 500 });
    content.value = memory.content;
    const type = select(TYPES, memory.type);
    const importance = h("input", { type: "range", min: "0", max: "1", step: "0.05", value: String(memory.importance) });
    const form = h("form", {
      class: "edit",
      onsubmit: async (event) => {
        event.preventDefault();
        try {
          memory = await call("PUT", path(memory), { query: ofUser(), body: { content: content.value.trim(), type: type.value, importance: Number(importance.value) } });
          close();
          toast("Changed. The former version is in its history.");
        } catch (error) {
          toast(error.message, { kind: "bad" });
        }
      },
    }, field("Content", content), h("div", { class: "filters" }, field("Type", type), field("Importance", importance)),
    h("div", { class: "row" }, h("button", { class: "button primary", type: "submit" }, "Save"), button("Cancel", close, { kind: "quiet" })));
    fill(details, form);
    content.focus();
  }

  function past(event) {
    const open = !more.children.length;
    event.target.setAttribute("aria-expanded", String(open));
    if (open) shownIn(more, async () => {
      const [told, from] = await Promise.all([get(`${path(memory)}/history`, ofUser()), origin(memory)]);
      return [timeline(told), from];
    }, 2);
    else fill(more);
  }

  function forget() {
    const lines = [...document.querySelectorAll(".memory:not([hidden]) > .line")], at = lines.indexOf(line);
    leave(memory.id, "Forgotten", memory.content, (keepalive) => call("DELETE", path(memory), { query: whose, keepalive }), changed);
    (lines[at + 1] ?? lines[at - 1])?.focus();
  }

  async function release() {
    try {
      const told = await call("POST", `${path(memory)}/release`, { query: ofUser() });
      memory = told.memory;
      show();
      toast(told.released ? "Released: it can be shown from now on." : "Not released: another memory says the same already.");
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  }

  async function undo() {
    try {
      await call("POST", `${path(memory)}/undo`, { query: ofUser() });
      toast("Undone: what was known before is known again.");
      changed();
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  }

  show();
  fill(place, line, details);
  return place;
}

function told(memory) {
  const said = memory.source.time ?? memory.created_at;
  return [h("span", { class: "content", dir: "auto" }, memory.content), h("span", { class: "facts-of" },
    memory.status !== "active" && chip(memory.status, "warn"), chip(memory.type, memory.type),
    h("time", { datetime: said, title: moment(said) }, age(said)))];
}

function reading(memory, acts) {
  const words = [memory.metadata.standing && "always matters", memory.metadata.provisional && "provisional", memory.metadata.unsettled && "in doubt"];
  return [
    h("p", { class: "marks" }, h("span", {}, `said ${moment(memory.source.time ?? memory.created_at)}`), h("span", {}, `version ${memory.version}`),
      ...words.filter(Boolean).map((word) => chip(word)), memory.project_id && chip(`project ${memory.project_id}`),
      memory.expires_at && h("span", {}, `until ${day(memory.expires_at)}`)),
    h("div", { class: "row acts" },
      may("write") && button("Edit", acts.edit, { kind: "quiet" }),
      h("button", { type: "button", class: "button quiet", onclick: acts.past, "aria-expanded": "false" }, "History"),
      may("write") && memory.status === "quarantined" && button("Release", acts.release, { kind: "quiet" }),
      may("write") && ((memory.status === "active" && memory.metadata.changes_standing) || memory.metadata.superseded_why === "asked_to_forget") && button("Undo change", acts.undo, { kind: "quiet" }),
      may("write") && button("Forget", acts.forget, { kind: "quiet danger" }),
      memory.status === "active" && thumbs(memory)),
  ];
}

// The conversation that it was learnt from, where that is on record; looked for only when somebody asks for the past.
async function origin(memory) {
  if (!memory.source.session) return null;
  const told = await get("/v1/conversations", ofUser({ session_id: memory.source.session, project_id: memory.project_id, limit: 20 })).catch((error) => error);
  if (told instanceof ApiError) return unread("The conversation that it came from");
  const found = told.conversations.find((each) => each.project_id === memory.project_id);
  return found && h("p", { class: "hint" }, "From the conversation ", h("a", { href: link("conversations", found.id) }, h("bdi", {}, found.title.trim() || "without a title")), ` of ${day(found.created_at)}.`);
}

const ROLES = { api: "written in the Studio or through the API", user: "said by the user", assistant: "said by the assistant", tool: "told by a tool", system: "said by the operator" };
const NOW = { active: "what holds now", quarantined: "held back: in no prompt until it is released", superseded: "not used any more" };
const ENDED = {
  updated: "until its words were changed", released: "held back, until it was released", merged: "until repetitions were merged into it",
  asked_to_forget: "until its user asked to forget it", undone: "until the change was undone", superseded: "until another memory took its place",
};
const spoken = (word) => word.replaceAll("_", " ");

function timeline(told) {
  const versions = [...told.versions, told.current];
  return [
    h("ol", { class: "timeline" }, versions.map((version, at) => h("li", {},
      h("time", { datetime: version.updated_at }, moment(version.updated_at)),
      h("p", { dir: "auto" }, at ? changes(versions[at - 1].content, version.content) : version.content),
      h("p", { class: "hint" }, [`version ${version.version}`, at && altered(versions[at - 1], version), version === told.current ? held(version) : ended(version),
        ROLES[version.source.role] ?? `from ${version.source.role}`].filter(Boolean).join(" · "))))),
    told.dropped.map((row) => h("p", { class: "hint" }, `${row.times} repetition${row.times === 1 ? "" : "s"} dropped (${row.reason}), last ${moment(row.last_at)}`)),
    h("p", { class: "hint" }, told.uses.count ? `In ${told.uses.count} prompt${told.uses.count === 1 ? "" : "s"}, last ${moment(told.uses.last_at)}.` : "In no prompt yet."),
  ];
}

// What changed beside the words.
function altered(before, version) {
  return [before.type !== version.type && `${before.type} became ${version.type}`,
    before.importance !== version.importance && `importance ${before.importance} became ${version.importance}`].filter(Boolean).join(", ");
}

const held = (version) => (version.superseded_why ? `${NOW.superseded}: ${spoken(version.superseded_why)}` : NOW[version.status] ?? version.status);
const ended = (version) => (version.replaced_why ? ENDED[version.replaced_why] ?? `until it was replaced: ${spoken(version.replaced_why)}` : "until its times or its worth changed");
