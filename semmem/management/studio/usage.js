// How much is asked, of which models, and what it costs. Figures only: no content, users as digests.

import { get, link, may, who } from "./api.js";
import { chart } from "./chart.js";
import { doctor, setting } from "./commands.js";
import { card, empty, field, fill, h, milliseconds, number, percent, select, shownIn, svg, table } from "./dom.js";

const HOUR_MS = 3_600_000, DAY_MS = 24 * HOUR_MS;
const WEEKS = 53;
const CELL = 13;
const GROUPS_MAX = 1000;
// Of so few days, or fewer, hours are shown; and at least so many places.
const HOURLY_DAYS = 7;
const PLACES_MIN = 24;
const RANGES = [["", "Everything that is kept"], ["1", "Today"], ["7", "The last 7 days"], ["30", "The last 30 days"], ["365", "The last 365 days"]];
const MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", timeZone: "UTC" });
const HOUR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

export function usage(place) {
  const figures = h("div", { class: "page" });
  let days = "", whose = "";
  const load = () => shownIn(figures, async () => {
    const of = asked(days, whose), summary = await get("/v1/usage/summary", of);
    const by = days && Number(days) <= HOURLY_DAYS ? "hour" : "day";
    return page(summary, summary.total.requests ? await get("/v1/usage", { ...of, from: summary.started, by, limit: GROUPS_MAX }) : null);
  }, 5);
  const range = field("Days", select(RANGES, days, (value) => { days = value; load(); }), "Days and hours are those of UTC.");
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

function page(told, over) {
  if (!told.total.requests) {
    return told.recording
      ? empty("Nothing yet", "Requests whose answers are observed are counted here. Those of other replicas appear when they are written: after usage.flush_rows of them, or after usage.flush_s.", doctor())
      : empty("Statistics of use are off", "Set usage.enabled: true in the configuration and start semmem again. Figures are kept then, of nobody by name, and nothing that was said.", may("operate") && setting("usage"));
  }
  const total = told.total;
  return [
    told.recording ? null : h("p", { class: "hint" }, "Recording is off: these are figures of earlier."),
    h("div", { class: "figures" },
      figure(number(total.requests), "requests"), figure(number(total.tokens_in), "tokens in"), figure(number(total.tokens_out), "tokens out"),
      figure(share(total), total.cached_share === null ? "prompt tokens cached: no provider reported it" : "prompt tokens cached"),
      figure(number(total.errors), "without a whole answer"), figure(total.mean_duration_ms === null ? "unknown" : duration(total.mean_duration_ms), "mean time to the whole answer")),
    total.estimated > 0 && h("p", { class: "hint" }, `Tokens of ${number(total.estimated)} requests are estimated.`),
    h("p", { class: "marks" }, "The last ones, one by one:", may("read") && h("a", { href: link("requests") }, "Requests"), may("operate") && h("a", { href: link("live") }, "Live")),
    card(over.by === "hour" ? "By the hour" : "By the day", h("div", { class: "charts" }, charts(over)), asTable(over)),
    over.by === "day" && card("Activity", heatMap(told.activity)),
    h("div", { class: "figures" },
      figure(date(told.started), "started"), figure(number(told.days_active), "days active"),
      figure(date(told.most_active_day.day), `most active day: ${number(told.most_active_day.requests)} requests`),
      figure(days(told.longest_streak), "longest streak"), figure(number(told.sessions), "sessions"), figure(number(told.messages), "messages"),
      figure(number(told.tokens), "tokens"), figure(number(told.projects), "projects"),
      figure(money(total.cost, told.currency), total.unpriced ? `cost; ${number(total.unpriced)} requests have no price` : "cost"),
      figure(money(told.cost_saved, told.currency), told.compared_with ? `saved, compared with ${told.compared_with}` : "saved: nothing to compare with")),
    h("div", { class: "cards" },
      card("Top models", top(told.models, "model", told.currency)), card("Providers", top(told.providers, "provider", told.currency)),
      told.top_projects.length > 0 && card("Projects", top(told.top_projects, "project", told.currency))),
  ].filter(Boolean);
}

const duration = (value) => (value < 1000 ? milliseconds(value) : `${number(Math.round(value / 100) / 10)} s`);
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
  const map = svg("svg", { viewBox: `0 0 ${WEEKS * CELL} ${8 * CELL + 4}`, class: "heat", role: "img", "aria-label": `Requests on each day of the last ${WEEKS} weeks: ${days(activity.length)} with requests, at most ${number(most)} on one. The table above has them.` });
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

// Every hour or day from the first with a request until now; one without any is as good as a group of zeros.
function charts(over) {
  const { by, groups, total, currency } = over, width = by === "hour" ? HOUR_MS : DAY_MS;
  const of = new Map(groups.map((group) => [Date.parse(group[by]), group])), last = Math.max(...of.keys(), Math.floor(Date.now() / width) * width);
  const first = Math.min(...of.keys(), last - (PLACES_MIN - 1) * width);
  const places = Array.from({ length: (last - first) / width + 1 }, (_, place) => first + place * width);
  const times = places.map((time) => (by === "hour" ? HOUR : DATE).format(time));
  const one = (name, shape, tone, value, without = 0) => ({ name, shape, tone, values: places.map((time) => (of.has(time) ? value(of.get(time)) : without)) });
  return [
    chart("Requests", times, [one("requests", "columns", "a", (group) => group.requests), one("without a whole answer", "columns", "bad", (group) => group.errors)], number),
    chart("Tokens", times, [{ ...one("out", "columns", "b", (group) => group.tokens_out), heights: places.map((time) => (of.has(time) ? of.get(time).tokens_in + of.get(time).tokens_out : 0)) },
      one("in", "columns", "a", (group) => group.tokens_in)], number),
    total.cached_share !== null && chart("Prompt tokens, where reported", times, [one("all", "columns", "a", (group) => group.prompt_tokens), one("cached", "columns", "c", (group) => group.cached_tokens)], number),
    chart("Time to the whole answer", times, [one("mean", "curve", "a", (group) => group.mean_duration_ms, null)], duration),
    total.cost !== null && chart("Cost", times, [one("cost", "columns", "a", (group) => group.cost)], (value) => money(value, currency)),
  ];
}

const COLUMNS = ["Requests", "Errors", "Tokens in", "Tokens out", "Prompt tokens cached", "Time to the answer", "Cost"];
function asTable({ by, groups, currency }) {
  const name = by === "hour" ? "Hours with requests" : "Days with requests";
  const rows = groups.toReversed().map((group) => [(by === "hour" ? HOUR : DATE).format(Date.parse(group[by])), number(group.requests), number(group.errors), number(group.tokens_in), number(group.tokens_out), share(group), duration(group.mean_duration_ms), money(group.cost, currency)]);
  return h("details", {}, h("summary", {}, "The same as a table"), table(name, `${name}, the latest first`, [by === "hour" ? "Hour" : "Day", ...COLUMNS], rows).place);
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
