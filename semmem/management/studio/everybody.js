// Users as a table, for an administrator: searched, sorted, a page at a time; whoever wants to see one follows a link.

import { askAlias } from "./alias.js";
import { call, get } from "./api.js";
import { doctor } from "./commands.js";
import { age, button, day, debounced, empty, failed, field, fill, h, loading, moment, number, select, toast } from "./dom.js";

const PART = 1000, PAGE = 25;
// Figures are of one user each: so many are asked for at once, and no more users than this are sorted by them.
const AT_ONCE = 4, COUNTED_MAX = 250;
const SWITCH = [["", "Default"], ["on", "On"], ["off", "Off"]];
const SWITCHES = { reading: "In prompts", storing: "Learnt from" };
const COLUMNS = [["user", "User"], ["memories", "Memories"], ["newest", "Newest memory"], ["seen", "Last seen"],
  ["reading", SWITCHES.reading], ["storing", SWITCHES.storing]];
const COUNTED = new Set(["memories", "newest"]), GREATEST_FIRST = new Set([...COUNTED, "seen"]);
const PAGES = [["conversations", "Conversations"], ["playground", "Playground"], ["requests", "Requests"]];
const STATES = { true: "descending", false: "ascending" };

const asked = { q: "", by: "user", down: false, at: 0 };

export function everybody(place) {
  const list = h("div", { class: "list people" }), told = h("p", { class: "count", role: "status" }), trouble = h("div");
  const headings = new Map(COLUMNS.map(([name, label]) => [name, heading(name, label)]));
  const body = h("tbody", { role: "rowgroup" }), turns = h("div", { class: "row" });
  const users = [], figures = new Map();
  let gone = false, drawing = 0, complete = false;

  const table = h("div", { class: "scroll wide", tabIndex: 0, role: "region", "aria-label": "Users" },
    h("table", { role: "table" }, h("caption", { class: "hidden" }, "Users"), h("thead", { role: "rowgroup" },
      h("tr", { role: "row" }, [...headings.values()], h("th", { scope: "col", role: "columnheader" }, "More"))), body));

  function heading(name, label) {
    return h("th", { scope: "col", role: "columnheader" }, h("button", {
      type: "button", class: "sort", onclick: () => {
        Object.assign(asked, { by: name, down: asked.by === name ? !asked.down : GREATEST_FIRST.has(name), at: 0 });
        draw();
      },
    }, label));
  }

  async function load() {
    fill(list, loading(5));
    users.length = 0;
    figures.clear();
    fill(body);
    try {
      for (let after = ""; after !== null;) {
        const page = await get("/v1/users", { limit: PART, after });
        if (gone) return;
        users.push(...page.users.map((user) => ({
          user, alias: page.aliases[user] ?? null, seen: page.last_seen[user] ?? null, reading: null, storing: null, ...page.memory_switches[user],
        })));
        after = page.next_after;
        complete = after === null;
        if (users.length) fill(list, told, trouble, table, turns);
        draw();
      }
      if (!users.length) fill(list, empty("Nobody yet", "Whoever says something through Envoy appears here, once semmem knows who it is.", doctor()));
    } catch (error) {
      if (!gone) fill(list, failed(error, load));
    }
  }

  // What a column is sorted by; whatever is not known comes last.
  function value(one) {
    if (asked.by === "user") return (one.alias ?? one.user).toLowerCase();
    if (!COUNTED.has(asked.by)) return one[asked.by] ?? "";
    const known = figures.get(one.user);
    return known ? (asked.by === "newest" ? Date.parse(known.newest ?? 0) : known.memories) : -1;
  }

  function sorted(found) {
    const way = asked.down ? -1 : 1;
    const pairs = found.map((one) => [value(one), one]);
    pairs.sort(([a, x], [b, y]) => (a < b ? -way : a > b ? way : x.user < y.user ? -1 : 1));
    return pairs.map(([, one]) => one);
  }

  async function draw() {
    const mine = (drawing += 1);
    const wanted = asked.q.toLowerCase(), found = users.filter((one) => [one.user, one.alias ?? ""].some((name) => name.toLowerCase().includes(wanted)));
    const many = COUNTED.has(asked.by) && found.length > COUNTED_MAX;
    if (many) {
      toast(`Only ${number(COUNTED_MAX)} users or fewer can be sorted by this. Search for some first.`);
      Object.assign(asked, { by: "user", down: false });
    }
    for (const [name, made] of headings) made.setAttribute("aria-sort", name === asked.by ? STATES[asked.down] : "none");
    if (COUNTED.has(asked.by)) {
      fill(told, `Counting the memories of ${number(found.length)} users`);
      await count(found, () => mine === drawing);
      if (mine !== drawing) return;
    }
    asked.at = Math.min(asked.at, Math.max(0, Math.floor((found.length - 1) / PAGE) * PAGE));
    const rows = sorted(found).slice(asked.at, asked.at + PAGE);
    fill(told, rows.length ? `${number(asked.at + 1)} to ${number(asked.at + rows.length)} of ${number(found.length)} users` : "No user is named like that.",
      complete ? null : ", and there are more to come");
    if (rows.map((one) => one.user).join("\n") !== [...body.children].map((each) => each.dataset.user).join("\n")) fill(body, rows.map(row));
    fill(turns, found.length > PAGE && [button("Before", () => turn(-PAGE), { disabled: asked.at === 0 }),
      button("Next", () => turn(PAGE), { disabled: asked.at + PAGE >= found.length })]);
    count(rows, () => mine === drawing);
  }

  function turn(by) {
    asked.at += by;
    draw();
    list.scrollIntoView({ block: "nearest" });
  }

  // What is known of some users, a few calls at a time; the first that fails ends it, and is said above the table.
  async function count(some, wanted) {
    const left = some.filter((one) => !figures.has(one.user));
    fill(trouble);
    const one = async () => {
      while (left.length && wanted() && !gone && !trouble.children.length) {
        const { user } = left.shift();
        try {
          const page = await get("/v1/memory", { user_id: user, limit: 1 });
          figures.set(user, { memories: page.total, newest: page.memories[0]?.created_at });
          for (const each of body.children) if (each.dataset.user === user) counted(each, user);
        } catch (error) {
          if (wanted() && !trouble.children.length) fill(trouble, failed(error, draw));
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    if (wanted() && trouble.children.length) for (const each of body.querySelectorAll(".due")) each.textContent = "not known";
  }

  function row(one) {
    const cells = COLUMNS.slice(1).map(([name, label]) => h("td", { role: "cell", "data-label": label, class: COUNTED.has(name) ? "due" : "" },
      COUNTED.has(name) ? "…" : name === "seen" ? seen(one) : switchOf(one, name)));
    const made = h("tr", { role: "row", "data-user": one.user },
      h("th", { scope: "row", role: "rowheader" }, h("a", { href: at("memories", one.user) }, h("bdi", {}, one.alias ?? one.user)), one.alias && h("bdi", { class: "id" }, one.user)), cells,
      h("td", { role: "cell", "data-label": "More", class: "links" }, PAGES.map(([page, label]) =>
        h("a", { href: at(page, one.user), "aria-label": `${label} of ${called(one)}` }, label)),
      h("button", { type: "button", class: "name", "aria-label": `Name of ${called(one)}`, onclick: () => askAlias(one.user, one.alias) }, "Name …")));
    counted(made, one.user);
    return made;
  }

  function counted(made, user) {
    const known = figures.get(user);
    if (!known) return;
    const [memories, newest] = made.querySelectorAll("td");
    for (const each of [memories, newest]) each.classList.remove("due");
    fill(memories, number(known.memories));
    fill(newest, known.newest ? h("time", { datetime: known.newest, title: moment(known.newest) }, day(known.newest)) : "none");
  }

  // The row stays where it is, and what was asked to name it is where one goes on.
  function named({ detail }) {
    const one = users.find((each) => each.user === detail.user), old = [...body.children].find((each) => each.dataset.user === detail.user);
    if (!one) return;
    one.alias = detail.alias;
    if (!old) return;
    const made = row(one);
    old.replaceWith(made);
    setTimeout(() => made.querySelector(".name").focus()); // once the dialog is closed
  }

  addEventListener("named", named);
  fill(place, h("div", { role: "search" }, field("Search", h("input", {
    type: "search", value: asked.q, placeholder: "part of a name or an id", autocomplete: "off", spellcheck: "false",
    oninput: debounced((event) => { Object.assign(asked, { q: event.target.value.trim(), at: 0 }); draw(); }, 150),
  }))), list);
  load();
  return () => {
    gone = true;
    removeEventListener("named", named);
  };
}

const called = (one) => (one.alias ? `${one.alias} (${one.user})` : one.user);
const seen = (one) => (one.seen ? h("time", { datetime: one.seen, title: moment(one.seen) }, age(one.seen)) : "not on record");
const at = (page, user) => `#/${page}/${encodeURIComponent(user)}`;

// What is said of this user alone; where nothing is, the user's groups and the configuration say it.
function switchOf(one, name) {
  const made = select(SWITCH, one[name] ?? "", async () => {
    const before = one[name];
    one[name] = made.value || null;
    try {
      await call("PUT", `/v1/users/${encodeURIComponent(one.user)}/memory-switches`, { body: { reading: one.reading, storing: one.storing } });
      toast(`${SWITCHES[name]}, for ${called(one)}: ${(made.value || "default")}.`);
    } catch (error) {
      one[name] = before;
      made.value = before ?? "";
      toast(`Not changed: ${error.message}`, { kind: "bad", seconds: 10 });
    }
  });
  made.setAttribute("aria-label", `${SWITCHES[name]}: ${called(one)}`);
  return made;
}
