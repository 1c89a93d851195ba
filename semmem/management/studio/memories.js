// What is known about somebody: figures, a list that is searched as one types, and what can be done with all of it.

import { get, may, ofUser, who } from "./api.js";
import { added, whose } from "./commands.js";
import { button, choices, chip, debounced, empty, failed, field, fill, h, loading, number, percent, select, unread } from "./dom.js";
import { memoryItem } from "./memory_item.js";
import { tools } from "./memory_tools.js";
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
    fill(place, whose("memories"));
    return;
  }
  const figures = h("div", { class: "known marks", "aria-live": "polite" });
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
        : empty("No memories yet", may("write") ? "They come from conversations through Envoy, or add one above." : "They come from conversations through Envoy.", added()));
      return;
    }
    const open = new Set([...list.querySelectorAll(".line[aria-expanded=true]")].map((line) => line.parentElement.dataset.id));
    const held = list.contains(document.activeElement) && document.activeElement.closest(".memory")?.dataset.id;
    fill(list,
      h("p", { class: "count" }, `${number(page.first)} to ${number(page.first + page.rows.length - 1)} of ${number(page.told.total)}`),
      h("ul", { class: "memories lines", onkeydown: moved }, page.rows.map((memory) => memoryItem(memory, changed, open.has(memory.id)))),
      (page.newer || page.older) && h("div", { class: "row" },
        button("Newer", () => turn(-1), { disabled: !page.newer }),
        button("Older", () => turn(1), { disabled: !page.older })));
    if (held) (list.querySelector(`[data-id="${CSS.escape(held)}"] > .line`) ?? list.querySelector(".memory:not([hidden]) > .line"))?.focus();
  }

  // Nobody's unsaved words are taken away by a list that is drawn anew.
  function changed() {
    forgetKnown();
    if (!list.querySelector(".edit")) load();
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

  fill(place, h("div", { class: "filters four narrow", role: "search" }, field("Search", search), field("Project", project), field("Type", type), field("Status", status)),
    may("write") && tools(() => { forgetKnown(); again(); }), figures, list, how());
  draw(() => paged.shown());
}

function how() {
  return h("details", { class: "card how" }, h("summary", {}, "How it works"),
    h("ol", {},
      h("li", {}, "A message through Envoy is kept in the journal; what it says of its author is remembered, at once where rules find it, and settled by the next batch."),
      h("li", {}, "A question is compared with that user's memories. One decision over the question, each memory's kind and all the evidence says which are shown, or none."),
      h("li", {}, "Those few lines are put into the prompt. What is forgotten here is in no answer from that moment on."),
      h("li", {}, "Keys, on a memory's line: up and down go to the next, Enter opens it, E edits, Delete forgets, Ctrl+Z brings back, Escape closes.")));
}

// What there is none of is not counted out.
function drawFigures(place, stats) {
  const order = TYPES.map(([type]) => type), types = Object.entries(stats.by_type).sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  const counts = [...types, ["quarantined", stats.by_status.quarantined], ["superseded", stats.by_status.superseded]];
  fill(place, stats.total > 0 && [h("b", {}, `${number(stats.total)} memor${stats.total === 1 ? "y" : "ies"}`),
    counts.filter(([, count]) => count).map(([word, count]) => chip(`${number(count)} ${word}`, word)),
    h("span", {}, `${number(stats.tokens)} tokens in all`), stats.hit_rate > 0 && h("span", {}, `${percent(stats.hit_rate)} used at least once`)]);
}

// From line to line with the arrows; the last thing forgotten comes back with what undoes elsewhere.
function moved(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && !event.target.matches("input, textarea")) {
    [...document.querySelectorAll("#toasts .undo")].at(-1)?.click();
    return;
  }
  if (!event.target.matches(".line")) return;
  const lines = [...event.currentTarget.querySelectorAll(".memory:not([hidden]) > .line")], at = lines.indexOf(event.target);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  lines[to]?.focus();
}
