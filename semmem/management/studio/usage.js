// How much is asked, of which models, and what it costs. Figures only: no content, users as digests.

import { get, may, who } from "./api.js";
import { card, empty, field, fill, h, number, select, shownIn, svg } from "./dom.js";

const DAY_MS = 86_400_000;
const WEEKS = 53;
const CELL = 13;
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
      ? empty("Nothing yet", "Requests whose answers are observed are counted here. Those of other replicas appear when they are written: after usage.flush_rows of them, or after usage.flush_s.")
      : empty("Statistics of use are off", "Set usage.enabled: true in the configuration and start semmem again. Figures are kept then, of nobody by name, and nothing that was said.");
  }
  const total = told.total;
  return [
    told.recording ? null : h("p", { class: "hint" }, "Recording is off: these are figures of earlier."),
    h("div", { class: "figures" },
      figure(date(told.started), "started"), figure(number(told.days_active), "days active"),
      figure(date(told.most_active_day.day), `most active day: ${number(told.most_active_day.requests)} requests`),
      figure(days(told.longest_streak), "longest streak"), figure(number(told.sessions), "sessions"), figure(number(told.messages), "messages"),
      figure(number(told.tokens), "tokens"), figure(number(told.projects), "projects"),
      figure(money(total.cost, told.currency), total.unpriced ? `cost; ${number(total.unpriced)} requests have no price` : "cost"),
      figure(money(told.cost_saved, told.currency), told.compared_with ? `saved, compared with ${told.compared_with}` : "saved: nothing to compare with")),
    h("p", { class: "hint" }, `${number(total.requests)} requests, ${number(total.errors)} of them without a whole answer; ${number(total.tokens_in)} tokens in, ${number(total.tokens_out)} out`,
      total.estimated ? `, in ${number(total.estimated)} requests estimated.` : "."),
    card("Activity", heatMap(told.activity), asTable(told.activity)),
    h("div", { class: "cards" },
      card("Top models", top(told.models, "model", told.currency)), card("Providers", top(told.providers, "provider", told.currency)),
      told.top_projects.length > 0 && card("Projects", top(told.top_projects, "project", told.currency))),
  ].filter(Boolean);
}

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
  const rows = [...activity].reverse().map((each) => h("tr", {}, h("td", {}, date(each.day)), h("td", {}, number(each.requests)), h("td", {}, number(each.tokens))));
  return h("details", {}, h("summary", {}, "The same as a table"), h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Days with requests" },
    h("table", {}, h("caption", { class: "hidden" }, "Days with requests, the latest first"),
      h("thead", {}, h("tr", {}, ["Day", "Requests", "Tokens"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows))));
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
