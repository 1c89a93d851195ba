// What is known about somebody: figures, a list that is searched as one types, and what can be done with all of it.

import { get, may, ofUser, who } from "./api.js";
import { button, choices, debounced, empty, failed, field, fill, h, loading, number, percent, select, unread } from "./dom.js";
import { memoryItem } from "./memory_item.js";
import { addForm, tools } from "./memory_tools.js";
import { pages } from "./pages.js";

const PAGE = 25, PART = 1000;
const TYPES = [["", "Every type"], ["semantic", "Semantic"], ["episodic", "Episodic"], ["procedural", "Procedural"], ["reflective", "Reflective"]];
const STATUSES = [["", "Every status"], ["active", "Active"], ["quarantined", "Quarantined"], ["superseded", "Superseded"]];

const ANY = { q: "", type: "", status: "", project: "" };

const asked = { ...ANY };
// What the filter offers: as it was when everything was asked for.
const known = { user: "", projects: [] };

export function memories(place) {
  if (!who.user) {
    fill(place, empty("Whose memories?", may("administer") ? "Nobody has a memory yet, or name a user above." : "Name a user above."));
    return;
  }
  const figures = h("div", { class: "figures", "aria-live": "polite" });
  const list = h("div", { class: "list" });
  let figuresDue = true, figuresAsked = false, paged = begun(), asking = 0;

  // Figures come with what is asked for anew, not with the parts that follow it.
  function begun() {
    const { q, type, status, project } = asked;
    return pages((cursor) => {
      const stats = figuresDue ? "true" : undefined;
      figuresAsked = figuresDue;
      figuresDue = false;
      return get("/v1/memory", ofUser({ q, type, status, project_id: project, limit: PART, cursor, stats }));
    }, PAGE);
  }

  async function draw(work) {
    const mine = (asking += 1);
    if (!list.children.length) fill(list, loading(5));
    try {
      const page = await work();
      if (mine !== asking) return;
      if (page.told.stats) {
        drawFigures(figures, page.told.stats);
        offer(page.told.stats.by_project);
      }
      drawList(page);
    } catch (error) {
      if (mine !== asking) return;
      if (figuresAsked) fill(figures, unread("The figures"));
      fill(list, failed(error, load));
    }
  }

  // Figures of a part of it name a part of the projects.
  function offer(projects) {
    const told = Object.entries(projects).map(([name, memories]) => [name, `${number(memories)} memor${memories === 1 ? "y" : "ies"}`]);
    if (known.user !== who.user || !(asked.project || asked.type)) Object.assign(known, { user: who.user, projects: told });
    choices(project, known.projects);
  }

  // What was changed may have been the last of its project.
  const forgetKnown = () => { known.user = ""; };
  const load = () => { figuresDue = true; draw(() => paged.again()); };
  const again = () => { figuresDue = true; paged = begun(); draw(() => paged.shown()); };
  const turn = (by) => draw(() => paged.turn(by)).then(() => list.querySelector("h3, p")?.scrollIntoView({ block: "nearest" }));

  function drawList(page) {
    if (!page.rows.length) {
      const searched = Object.values(asked).some(Boolean);
      fill(list, searched ? empty("Nothing like that", "No memory matches the search and the filters.", button("Clear them", clear))
        : empty("No memories yet", "They come from conversations through Envoy, or add one above."));
      return;
    }
    fill(list,
      h("p", { class: "count" }, `${number(page.first)} to ${number(page.first + page.rows.length - 1)} of ${number(page.told.total)}`),
      h("ul", { class: "memories" }, page.rows.map((memory) => memoryItem(memory, () => { forgetKnown(); load(); }))),
      (page.newer || page.older) && h("div", { class: "row" },
        button("Newer", () => turn(-1), { disabled: !page.newer }),
        button("Older", () => turn(1), { disabled: !page.older })));
  }

  const search = h("input", { type: "search", value: asked.q, placeholder: "words a memory holds", oninput: debounced(() => { asked.q = search.value.trim(); again(); }) });
  const type = select(TYPES, asked.type, (value) => { asked.type = value; again(); });
  const status = select(STATUSES, asked.status, (value) => { asked.status = value; again(); });
  const project = h("input", { type: "search", value: asked.project, maxLength: 256, placeholder: "every project", autocomplete: "off", spellcheck: "false", oninput: debounced(() => { asked.project = project.value.trim(); again(); }) });
  function clear() {
    Object.assign(asked, ANY);
    search.value = type.value = status.value = project.value = "";
    again();
  }

  fill(place, how(), figures, may("write") && addForm(() => { forgetKnown(); again(); }),
    h("div", { class: "filters four", role: "search" }, field("Search", search), field("Project", project), field("Type", type), field("Status", status)),
    list, may("write") && tools(() => { forgetKnown(); again(); }));
  fill(figures, loading(1));
  draw(() => paged.shown());
}

function how() {
  return h("details", { class: "card how" }, h("summary", {}, "How it works"),
    h("ol", {},
      h("li", {}, "A message through Envoy is kept in the journal; what it says of its author is remembered, at once where rules find it, and settled by the next batch."),
      h("li", {}, "A question is compared with that user's memories. One decision over the question, each memory's kind and all the evidence says which are shown, or none."),
      h("li", {}, "Those few lines are put into the prompt. What is forgotten here is in no answer from that moment on.")));
}

function figure(value, label) {
  return h("div", { class: "figure" }, h("b", {}, value), h("span", {}, label));
}

function drawFigures(place, stats) {
  const of = (type) => number(stats.by_type[type] ?? 0);
  fill(place, figure(number(stats.total), "memories"), figure(of("semantic"), "semantic"), figure(of("episodic"), "episodic"), figure(of("procedural"), "procedural"),
    figure(number(stats.by_status.quarantined ?? 0), "quarantined"), figure(number(stats.tokens), "tokens in all"), figure(percent(stats.hit_rate), "used at least once"));
}
