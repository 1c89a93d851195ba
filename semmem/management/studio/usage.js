// How much is asked, of which models, and what it costs. Figures only: no content, users as digests.

import { get, may, who } from "./api.js";
import { doctor, setting } from "./commands.js";
import { card, empty, field, fill, h, number, percent, select, shownIn, svg } from "./dom.js";

const DAY_MS = 86_400_000;
const WEEKS = 53;
const CELL = 13;
const BARS = 53;
const BAR_HEIGHT = 5 * CELL;
const RANGES = [["", "Everything that is kept"], ["7", "The last 7 days"], ["30", "The last 30 days"], ["365", "The last 365 days"]];
const MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", timeZone: "UTC" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

export function usage(place) {
  const figures = h("div");
  let days = "", whose = "";
  const load = () => shownIn(figures, async () => page(await get("/v1/usage/summary", asked(days, whose))), 5);
  const range = field("Days", select(RANGES, days, (value) => { days = value; load(); }), "Days are those of UTC.");
  const people = may("operate") && may("read") && who.user && field("Whose",
    select([["", "Everybody's"], [who.user, `Only ${who.user}'s`]], whose, (value) => { whose = value; load(); }));
  fill(place, h("div", { class: "filters" }, range, people), figures);
  load();
}

function asked(days, whose) {
  const query = {};
  if (days) query.from = iso(Date.now() - (Number(days) - 1) * DAY_MS);
  const user = may("operate") ? whose : who.bound ? "" : who.user;
  if (user) query.user_id = user;
  return query;
}

const iso = (time) => new Date(time).toISOString().slice(0, 10);
const date = (text) => (text ? DATE.format(new Date(text)) : "none yet");
const days = (count) => `${number(count)} ${count === 1 ? "day" : "days"}`;

function page(told) {
  if (!told.total.requests) {
    return told.recording
      ? empty("Nothing yet", "Requests whose answers are observed are counted here. Those of other replicas appear when they are written: after usage.flush_rows of them, or after usage.flush_s.", doctor())
      : empty("Statistics of use are off", "Set usage.enabled: true in the configuration and start semmem again. Figures are kept then, of nobody by name, and nothing that was said.", may("operate") && setting("usage"));
  }
  const total = told.total;
  return [
    told.recording ? null : h("p", { class: "hint" }, "Recording is off: these are figures of earlier."),
    h("div", { class: "figures" },
      figure(date(told.started), "started"), figure(number(told.days_active), "days active"),
      figure(date(told.most_active_day.day), `most active day: ${number(told.most_active_day.requests)} requests`),
      figure(days(told.longest_streak), "longest streak"), figure(number(told.sessions), "sessions"), figure(number(told.messages), "messages"),
      figure(number(told.tokens), "tokens"), figure(number(told.projects), "projects"),
      figure(share(total), total.cached_share === null ? "prompt tokens cached: no provider reported it" : "prompt tokens cached"),
      figure(money(total.cost, told.currency), total.unpriced ? `cost; ${number(total.unpriced)} requests have no price` : "cost"),
      figure(money(told.cost_saved, told.currency), told.compared_with ? `saved, compared with ${told.compared_with}` : "saved: nothing to compare with")),
    h("p", { class: "hint" }, `${number(total.requests)} requests, ${number(total.errors)} of them without a whole answer; ${number(total.tokens_in)} tokens in, ${number(total.tokens_out)} out`,
      total.estimated ? `, in ${number(total.estimated)} requests estimated.` : "."),
    h("div", { class: "charts" },
      card("Activity", heatMap(told.activity), asTable(told.activity)),
      total.cached_share !== null && card("Prompt cache", ...promptCache(told))),
    h("div", { class: "cards" },
      card("Top models", top(told.models, "model", told.currency)), card("Providers", top(told.providers, "provider", told.currency)),
      told.top_projects.length > 0 && card("Projects", top(told.top_projects, "project", told.currency))),
  ].filter(Boolean);
}

const share = (each) => (each.prompt_tokens ? percent(each.cached_tokens / each.prompt_tokens) : "unknown");
const figure = (value, label) => h("div", { class: "figure" }, h("b", {}, value), h("span", {}, label));
const money = (value, currency) => (value === null ? "unknown" : `${value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: Math.abs(value) < 1 ? 4 : 2 })} ${currency}`.trim());

// One column for each week, Monday above, the latest on the right.
function heatMap(activity) {
  const requests = new Map(activity.map((each) => [each.day, each.requests]));
  const most = Math.max(...requests.values());
  const today = Math.max(Date.parse(iso(Date.now())), Date.parse(activity.at(-1).day));
  const weekday = (new Date(today).getUTCDay() + 6) % 7;
  const first = today - (weekday + 7 * (WEEKS - 1)) * DAY_MS;
  const map = svg("svg", { viewBox: `0 0 ${WEEKS * CELL} ${8 * CELL + 4}`, class: "heat", role: "img", "aria-label": `Requests on each day of the last ${WEEKS} weeks: ${number(activity.length)} days with requests, at most ${number(most)} on one. The table below has them.` });
  let shown = "";
  for (let time = first; time <= today; time += DAY_MS) {
    const place = Math.round((time - first) / DAY_MS), week = Math.floor(place / 7), count = requests.get(iso(time)) ?? 0;
    const month = MONTH.format(new Date(time));
    if (place % 7 === 0 && month !== shown) {
      const label = svg("text", { x: week * CELL, y: CELL - 4, class: "month" });
      label.textContent = shown || new Date(time).getUTCDate() < 15 ? month : "";
      map.append(label);
      shown = month;
    }
    const title = svg("title");
    title.textContent = `${DATE.format(new Date(time))}: ${number(count)}`;
    map.append(svg("rect", { x: week * CELL, y: (1 + (place % 7)) * CELL, width: CELL - 3, height: CELL - 3, rx: 2, class: `level-${count ? Math.ceil((4 * count) / most) : 0}`, "data-day": iso(time) }, title));
  }
  const box = h("div", { class: "heat-box", tabIndex: 0, role: "region", "aria-label": "Activity by day" }, map);
  requestAnimationFrame(() => { box.scrollLeft = box.scrollWidth; });
  return box;
}

function asTable(activity) {
  return table("Days with requests", ["Day", "Requests", "Tokens"], activity.map((each) => [date(each.day), number(each.requests), number(each.tokens)]));
}

function table(name, titles, oldestFirst) {
  const rows = [...oldestFirst].reverse().map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell))));
  return h("details", {}, h("summary", {}, "The same as a table"), h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": name },
    h("table", {}, h("caption", { class: "hidden" }, `${name}, the latest first`),
      h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows))));
}

// The share of prompt tokens that were cached, of the days of which it is known: a bar for each day, or for each week
// where the days are more than there are bars. A bar of nothing cached is grey; a day of which nothing is known has none.
function promptCache(told) {
  const { total } = told, known = told.activity.filter((each) => each.prompt_tokens);
  const last = Date.parse(known.at(-1).day), weekly = last - Date.parse(known[0].day) >= BARS * DAY_MS;
  const width = (weekly ? 7 : 1) * DAY_MS, end = weekly ? last + (6 - ((new Date(last).getUTCDay() + 6) % 7)) * DAY_MS : last;
  const bars = new Map();
  for (const each of known) {
    const back = Math.floor((end - Date.parse(each.day)) / width);
    const bar = bars.get(back) ?? { day: iso(end - back * width - (weekly ? 6 * DAY_MS : 0)), prompt_tokens: 0, cached_tokens: 0 };
    bar.prompt_tokens += each.prompt_tokens;
    bar.cached_tokens += each.cached_tokens;
    bars.set(back, bar);
  }
  const rows = [...bars.values()].map((bar) => [date(bar.day), number(bar.prompt_tokens), number(bar.cached_tokens), share(bar)]);
  const shown = [...bars].filter(([back]) => back < BARS), period = weekly ? "week" : "day";
  const chart = svg("svg", { viewBox: `0 0 ${BARS * CELL} ${BAR_HEIGHT}`, class: "shares", role: "img", "aria-label": `Share of prompt tokens that were cached, by ${period}: ${number(shown.length)} bars, the latest ${share(shown.at(-1)[1])}. The table below has them.` });
  for (const [back, bar] of shown) {
    const x = (BARS - 1 - back) * CELL, height = (BAR_HEIGHT * bar.cached_tokens) / bar.prompt_tokens, title = svg("title");
    title.textContent = `${weekly ? "Week of " : ""}${date(bar.day)}: ${share(bar)}`;
    chart.append(svg("g", { "data-day": bar.day }, svg("rect", { x, y: 0, width: CELL - 3, height: BAR_HEIGHT, rx: 2, class: "level-0" }),
      svg("rect", { x, y: BAR_HEIGHT - height, width: CELL - 3, height, rx: 2, class: "level-4" }), title));
  }
  const box = h("div", { class: "heat-box", tabIndex: 0, role: "region", "aria-label": `Prompt cache by ${period}` }, chart);
  requestAnimationFrame(() => { box.scrollLeft = box.scrollWidth; });
  const of = `${number(total.cached_tokens)} of ${number(total.prompt_tokens)} prompt tokens were cached, in the ${number(total.cache_reported)} of ${number(total.requests)} requests whose provider reported it.`;
  return [h("p", { class: "hint" }, of), box, table(`Prompt tokens by ${period}`, [weekly ? "Week of" : "Day", "Prompt tokens", "Cached", "Share"], rows)];
}

function top(entries, name, currency) {
  const most = Math.max(...entries.map((each) => each.requests));
  return h("ol", { class: "tops" }, entries.map((each) => {
    const filled = h("span", { class: "filled" });
    filled.style.width = `${Math.round((100 * each.requests) / most)}%`;
    const cost = each.cost === undefined ? "" : `, ${each.cost === null ? "no price" : money(each.cost, currency)}`;
    return h("li", {}, h("b", {}, each[name] || "not named"), h("span", { class: "bar", "aria-hidden": "true" }, filled),
      h("span", { class: "count" }, `${number(each.requests)} requests, ${number(each.tokens_in + each.tokens_out)} tokens${cost}`));
  }));
}
