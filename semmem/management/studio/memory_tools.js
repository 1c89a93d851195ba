// Adding one, taking copies, and making many of them fewer.

import { call, get, may, ofUser, post, raw, who } from "./api.js";
import { button, confirmed, dialog, facts, field, h, number, save, select, toast } from "./dom.js";

const LINES = 200;
const TYPES = [["semantic", "Semantic"], ["episodic", "Episodic"], ["procedural", "Procedural"]];

// Everything that is done with all of them, and the form that adds one, which is opened by the first button.
export function tools(changed) {
  const file = h("input", { type: "file", accept: ".jsonl,.ndjson,application/x-ndjson", class: "hidden", "aria-label": "File of an export", tabIndex: -1, onchange: () => taken(file, changed) });
  const form = addForm(changed), add = button("Add a memory", () => opened(form.hidden), { kind: "primary" });
  function opened(open) {
    form.hidden = !open;
    add.setAttribute("aria-expanded", String(open));
    (open ? form.querySelector("textarea") : add).focus();
  }
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") opened(false); });
  add.setAttribute("aria-expanded", "false");
  return [h("div", { class: "row tools", role: "group", "aria-label": "All of them" }, add,
    button("Export", exported, { title: "All of them, as JSON Lines" }),
    may("administer") && button("Import …", () => file.click()), may("administer") && file,
    button("Merge repetitions …", () => compacted(changed, "/v1/memory/consolidate", "Merge repetitions", {}), { title: "Shows first what it would do; the originals stay in the history" }),
    button("Compact the old …", () => compacted(changed, "/v1/memory/summarize", "Compact the old", { older_than_days: 90 }), { title: "Shows first what it would do; the originals stay in the history" }),
    button("Forget everything …", () => forgotten(changed), { kind: "danger" })), form];
}

function addForm(added) {
  const content = h("textarea", { rows: 2, maxLength: 500, minLength: 3, required: true, placeholder: "User likes oolong tea" });
  const type = select(TYPES, "semantic");
  return h("form", {
    class: "card add", hidden: true,
    onsubmit: async (event) => {
      event.preventDefault();
      try {
        await post("/v1/memory", ofUser({ content: content.value.trim(), type: type.value }));
        content.value = "";
        toast("Added.");
        added();
      } catch (error) {
        toast(error.message, { kind: "bad", seconds: 10 });
      }
    },
  }, field("Content", content), field("Type", type), h("button", { class: "button primary", type: "submit" }, "Add"));
}

async function exported() {
  try {
    if (may("administer")) return save(await raw("/v1/export", { user_id: who.user }), "memories.jsonl");
    const lines = [];
    for (let cursor = null, first = true; first || cursor; first = false) {
      const told = await get("/v1/memory", ofUser({ limit: 1000, cursor }));
      lines.push(...told.memories.map((memory) => JSON.stringify(memory)));
      cursor = told.next_cursor;
    }
    save(new Blob([lines.join("\n"), "\n"], { type: "application/x-ndjson" }), "memories.jsonl");
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
}

async function taken(input, changed) {
  const [file] = input.files;
  input.value = "";
  if (!file) return;
  try {
    const all = (await file.text()).split("\n").filter((line) => line.trim());
    const header = JSON.parse(all[0] ?? "{}"), end = JSON.parse(all.at(-1) ?? "{}");
    if (header.kind !== "semmem memories") throw new Error("This is no export of semmem's.");
    if (end.kind !== "end") throw new Error("The export ends too early; nothing was imported.");
    const lines = all.slice(1, -1), signature = header.signature;
    const counts = {};
    for (let at = 0; at < lines.length; at += LINES) {
      const told = await post("/v1/import", { signature, lines: lines.slice(at, at + LINES) });
      for (const [key, value] of Object.entries(told)) if (typeof value === "number") counts[key] = (counts[key] ?? 0) + value;
    }
    toast(Object.entries(counts).map(([key, value]) => `${key}: ${number(value)}`).join(", ") || "Nothing was in it.", { seconds: 10 });
    changed();
  } catch (error) {
    toast(error instanceof SyntaxError ? "This is no file of JSON Lines." : error.message, { kind: "bad", seconds: 10 });
  }
}

// First a dry run, then, if wanted, the same in earnest.
async function compacted(changed, path, title, more) {
  try {
    const told = await post(path, ofUser({ ...more, dry_run: true }));
    if (!told.groups.length) return toast("There is nothing to do.");
    const body = h("div", {}, h("p", {}, `${number(told.groups.length)} groups of ${number(told.candidates)} memories; about ${number(told.tokens_saved)} tokens fewer.`),
      h("ul", { class: "groups" }, told.groups.slice(0, 20).map(group)));
    dialog(`${title}: a dry run`, body, ["Leave it", "quiet"], ["Do it", "primary", async () => {
      try {
        await post(path, ofUser({ ...more, dry_run: false }));
        toast("Done. The originals are in the history.");
        changed();
      } catch (error) {
        toast(error.message, { kind: "bad", seconds: 10 });
      }
    }]);
  } catch (error) {
    toast(error.message, { kind: "bad", seconds: 10 });
  }
}

function group(told) {
  const of = told.merged ? [told.kept, ...told.merged] : told.memories;
  const becomes = told.merged ? told.kept.content : told.summary ?? `(left as they are: ${told.refused})`;
  return h("li", {}, h("p", {}, becomes), h("ul", {}, of.map((memory) => h("li", { class: "hint" }, memory.content))));
}

async function forgotten(changed) {
  const sure = await confirmed("Forget everything?", `Every memory of ${who.user} and what still waits to be learnt. There is no way back.`, "Forget everything");
  if (!sure) return;
  try {
    const told = await call("DELETE", "/v1/memory", { query: ofUser({ purge: may("administer") ? "true" : undefined }) });
    const rows = Object.entries(told.receipt).filter(([, value]) => typeof value !== "object");
    dialog("Forgotten", h("div", {}, h("p", {}, told.message), facts(rows.map(([key, value]) => [key.replaceAll("_", " "), value]))), ["Close", "primary"]);
    dispatchEvent(new CustomEvent("named", { detail: { user: who.user, alias: null } })); // it went with all the rest
    changed();
  } catch (error) {
    toast(error.message, { kind: "bad", seconds: 10 });
  }
}
