// One memory of a list: read, edited in its place, its past, forgotten with a way back.

import { ApiError, call, get, link, may, ofUser } from "./api.js";
import { button, chip, confirmed, day, field, fill, h, moment, select, shownIn, toast, unread } from "./dom.js";
import { thumbs } from "./thumbs.js";

const UNDO_S = 8;
const TYPES = [["semantic", "Semantic"], ["episodic", "Episodic"], ["procedural", "Procedural"], ["reflective", "Reflective"]];

const path = (memory) => `/v1/memory/${encodeURIComponent(memory.id)}`;

export function memoryItem(memory, changed) {
  const place = h("li", { class: `memory ${memory.status}`, "data-id": memory.id });
  const more = h("div", { class: "more" });
  const show = () => fill(place, reading(memory, { edit, past, forget, release, undo }), more);

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
          show();
          toast("Changed. The former version is in its history.");
        } catch (error) {
          toast(error.message, { kind: "bad" });
        }
      },
    }, field("Content", content), h("div", { class: "filters" }, field("Type", type), field("Importance", importance)),
    h("div", { class: "row" }, h("button", { class: "button primary", type: "submit" }, "Save"), button("Cancel", show, { kind: "quiet" })));
    fill(place, form);
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

  async function forget() {
    if (!(await confirmed("Forget this memory?", `“${memory.content}” will be in no answer any more.`, "Forget"))) return;
    place.hidden = true;
    const erase = async (keepalive) => {
      removeEventListener("pagehide", atOnce);
      try {
        await call("DELETE", path(memory), { query: ofUser(), keepalive });
        if (!keepalive) changed();
      } catch (error) {
        if (error.status !== 404) { place.hidden = false; toast(`Not forgotten: ${error.message}`, { kind: "bad" }); }
      }
    };
    const timer = setTimeout(() => erase(false), UNDO_S * 1000);
    const atOnce = () => { clearTimeout(timer); erase(true); };
    addEventListener("pagehide", atOnce);
    toast(`Forgotten in ${UNDO_S} seconds.`, {
      seconds: UNDO_S, action: "Undo",
      act: () => { clearTimeout(timer); removeEventListener("pagehide", atOnce); place.hidden = false; place.querySelector("button")?.focus(); },
    });
  }

  async function release() {
    try {
      const told = await call("POST", `${path(memory)}/release`, { query: ofUser() });
      memory = told.memory;
      show();
      toast("Released: it can be shown from now on.");
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
  return place;
}

function reading(memory, acts) {
  const words = [memory.metadata.standing && "always matters", memory.metadata.provisional && "provisional", memory.metadata.unsettled && "in doubt"];
  return [
    h("p", { class: "content" }, memory.content),
    h("p", { class: "marks" }, chip(memory.type, memory.type), memory.status !== "active" && chip(memory.status, "warn"),
      ...words.filter(Boolean).map((word) => chip(word)), memory.project_id && chip(`project ${memory.project_id}`),
      h("time", { datetime: memory.created_at, title: moment(memory.created_at) }, `said ${day(memory.source.time ?? memory.created_at)}`),
      h("span", {}, `version ${memory.version}`), memory.expires_at && h("span", {}, `until ${day(memory.expires_at)}`)),
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

function timeline(told) {
  const versions = [...told.versions, told.current];
  return [
    h("ol", { class: "timeline" }, versions.map((version) => h("li", {},
      h("time", { datetime: version.updated_at }, moment(version.updated_at)),
      h("p", {}, version.content),
      h("p", { class: "hint" }, [`version ${version.version}`, version.status, version.replaced_why && `replaced: ${version.replaced_why}`,
        version.superseded_why && `superseded: ${version.superseded_why}`, `from ${version.source.role}`].filter(Boolean).join(" · "))))),
    told.dropped.map((row) => h("p", { class: "hint" }, `${row.times} repetition${row.times === 1 ? "" : "s"} dropped (${row.reason}), last ${moment(row.last_at)}`)),
    h("p", { class: "hint" }, told.uses.count ? `In ${told.uses.count} prompt${told.uses.count === 1 ? "" : "s"}, last ${moment(told.uses.last_at)}.` : "In no prompt yet."),
  ];
}
