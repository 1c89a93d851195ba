// Everybody's memories for an administrator, to look through: whoever wants to change one opens its user's page.

import { get } from "./api.js";
import { button, chip, day, empty, failed, fill, h, loading, moment, number } from "./dom.js";
import { pages } from "./pages.js";

const PAGE = 50, PART = 1000;

export function everybody(place) {
  const list = h("div", { class: "list" });
  const paged = pages((cursor) => get("/v1/memories", { limit: PART, cursor }), PAGE);
  let gone = false;

  async function draw(work) {
    try {
      const page = await work();
      if (!gone) show(page);
    } catch (error) {
      if (!gone) fill(list, failed(error, () => draw(() => paged.again())));
    }
  }

  const turn = (by) => draw(() => paged.turn(by)).then(() => { if (!gone) list.scrollIntoView({ block: "nearest" }); });

  function show(page) {
    if (!page.rows.length) {
      fill(list, empty("No memories yet", "They come from conversations through Envoy."));
      return;
    }
    fill(list, h("p", { class: "count", "aria-live": "polite" }, `${number(page.first)} to ${number(page.first + page.rows.length - 1)}${page.older ? "" : `, of ${number(page.first + page.rows.length - 1)}`}`),
      h("ul", { class: "memories" }, page.rows.map(item)),
      (page.newer || page.older) && h("div", { class: "row" },
        button("Before", () => turn(-1), { disabled: !page.newer }), button("Next", () => turn(1), { disabled: !page.older })));
  }

  fill(list, loading(5));
  fill(place, h("p", { class: "hint" }, "User by user, by name, and of each the newest first."), list);
  draw(() => paged.shown());
  return () => { gone = true; };
}

const item = (memory) => h("li", { class: `memory ${memory.status}`, "data-id": memory.id },
  h("p", { class: "content" }, memory.content),
  h("p", { class: "marks" }, h("a", { href: `#/memories/${encodeURIComponent(memory.user_id)}` }, memory.user_id), chip(memory.type, memory.type),
    memory.status !== "active" && chip(memory.status, "warn"), memory.project_id && chip(`project ${memory.project_id}`),
    h("time", { datetime: memory.created_at, title: moment(memory.created_at) }, `said ${day(memory.source.time ?? memory.created_at)}`), h("span", {}, `version ${memory.version}`)));
