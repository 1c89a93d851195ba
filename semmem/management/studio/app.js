// Which page is shown, to whom, and in what light.

import { aliasOf, askAlias } from "./alias.js";
import { get, link, may, token, who, whenSignedOut } from "./api.js";
import { conversations } from "./conversations.js";
import { button, debounced, failed, fill, h, loading, toast, unread } from "./dom.js";
import { engine } from "./engine.js";
import { everybody } from "./everybody.js";
import { live } from "./live.js";
import { memories } from "./memories.js";
import { playground } from "./playground.js";
import { requests } from "./requests.js";
import { signIn } from "./sign_in.js";
import { usage } from "./usage.js";

const PAGES = {
  memories: { label: "Memories", show: memories, needs: "read" },
  everybody: { label: "Everybody", show: everybody, needs: "administer" },
  conversations: { label: "Conversations", show: conversations, needs: "read operate" },
  playground: { label: "Playground", show: playground, needs: "read" },
  requests: { label: "Requests", show: requests, needs: "read" },
  engine: { label: "Engine", show: engine, needs: "operate" },
  live: { label: "Live", show: live, needs: "operate" },
  usage: { label: "Usage", show: usage, needs: "read operate" },
};

const ABOUT_NOBODY = new Set(["everybody", "engine", "live"]);
const HOMES = ["memories", "engine"];

const open = (page) => page.needs.split(" ").some(may);

const main = document.getElementById("main");
const bar = document.getElementById("bar");
let leave = () => {};

const THEMES = ["system", "light", "dark"];
const theme = () => localStorage.getItem("semmem-theme") ?? "system";
function dress() {
  if (theme() === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme();
}

function themeButton() {
  const label = () => h("span", { class: "word" }, `Theme: ${theme()}`);
  const made = button(label(), () => {
    localStorage.setItem("semmem-theme", THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
    dress();
    fill(made, label());
  }, { kind: "quiet theme" });
  return made;
}

function plain(text) {
  try {
    return decodeURIComponent(text ?? "");
  } catch {
    return "";
  }
}

// The page and, of what it shows, the one that the address names, with the words that it was found by. The address may
// also name the user.
function current() {
  const [name, user, id, words] = location.hash.replace(/^#\/?/, "").split("/").map(plain);
  if (user && !who.bound) who.user = user;
  return [Object.hasOwn(PAGES, name) && open(PAGES[name]) ? name : HOMES.find((each) => open(PAGES[each])), id, words];
}

// An administrator looks at one user at a time, whom they name.
function userPicker() {
  if (!may("read")) return null;
  if (who.bound) return h("div", { class: "whose" }, may("write") ? h("button", { type: "button", class: "button quiet own", title: "Change your name here", onclick: () => askAlias(who.user, called.alias) }, who.user) : h("span", { class: "own" }, who.user));
  const names = h("datalist", { id: "users" });
  // Of many users those are offered who follow what is typed.
  let asked = false, more = false;
  const trouble = h("span");
  const offer = () => {
    if ((asked && !more) || !may("administer")) return;
    asked = true;
    get("/v1/users", { limit: 1000, after: more ? input.value.trim() : "" }).then((told) => {
      more ||= told.next_after !== null;
      fill(names, told.users.map((user) => h("option", { value: user }, told.aliases[user])));
      fill(trouble);
    }, () => {
      asked = false;
      fill(trouble, unread("The users"));
    });
  };
  const input = h("input", {
    type: "search", id: "user", value: who.user, list: "users", placeholder: "user id", autocomplete: "off", spellcheck: "false", onfocus: offer,
    oninput: debounced(() => {
      offer();
      const [name] = current();
      who.user = input.value.trim();
      history.replaceState(null, "", link(name));
      show(false);
    }, 400),
  });
  return h("div", { class: "whose" }, h("label", { for: "user" }, "User"), input, h("bdi", { class: "alias" }), names, trouble);
}

// What the user in the bar is called. Where that cannot be read, the id is there.
const called = { user: "", alias: null };
function drawAlias() {
  if (called.user !== who.user) {
    const user = who.user;
    Object.assign(called, { user, alias: null });
    if (user) aliasOf(user).then((alias) => calledNow(user, alias), () => {});
  }
  const [own, other] = [".own", ".alias"].map((place) => bar.querySelector(place));
  if (own) fill(own, h("bdi", {}, called.alias ?? who.user));
  if (other) fill(other, called.alias).title = called.alias ?? "";
}

function calledNow(user, alias) {
  if (user !== called.user) return;
  called.alias = alias;
  drawAlias();
}
addEventListener("named", ({ detail }) => calledNow(detail.user, detail.alias));

// Whether all parts work, for whoever may know it.
const HEALTH_MS = 15000;
let watching = 0;
function healthDot() {
  clearInterval(watching);
  if (!may("operate")) return null;
  const dot = h("span", { class: "dot", role: "img", "aria-label": "Parts: not known yet" });
  const said = h("span", { class: "health", "aria-hidden": "true" });
  const look = async () => {
    let [state, text] = ["bad", "semmem does not answer"];
    try {
      const away = Object.entries((await get("/v1/status")).components).filter(([, good]) => !good).map(([name]) => name);
      [state, text] = away.length ? ["bad", `Not ready: ${away.join(", ")}`] : ["good", "All parts work"];
    } catch (error) {
      if (error.status) text = `Not known: ${error.message}`;
    }
    dot.className = `dot ${state}`;
    dot.title = text;
    dot.setAttribute("aria-label", text);
    said.textContent = state === "bad" ? text : "";
  };
  watching = setInterval(look, HEALTH_MS);
  look();
  return [dot, said];
}

// On a narrow screen they are one row that is moved sideways: for a keyboard, and never under a finger that presses one.
const pages = h("nav", { "aria-label": "Pages", onfocusin: (event) => { if (event.target.matches(":focus-visible")) inView(event.target); } });

function inView(page) {
  const [row, here] = [pages, page].map((each) => each.getBoundingClientRect());
  pages.scrollLeft += here.left + here.width / 2 - row.left - row.width / 2;
}

function drawPages(name) {
  bar.querySelector(".brand").href = link(HOMES.find((each) => open(PAGES[each])));
  fill(pages, Object.entries(PAGES).filter(([, page]) => open(page)).map(([each, page]) =>
    h("a", { href: link(each), "aria-current": each === name ? "page" : undefined }, page.label)));
  inView(pages.querySelector("[aria-current]"));
}

function drawBar() {
  fill(bar, h("a", { class: "brand" }, h("img", { src: "icon.svg", alt: "", width: 24, height: 24 }), h("span", { class: "word" }, "semmem Studio")),
    healthDot(), pages, h("div", { class: "spacer" }), userPicker(), themeButton(),
    button("Sign out", () => { clearInterval(watching); token.set(""); start(); }, { kind: "quiet leave" }));
}

function show(withBar = true) {
  const [name, id, words] = current();
  if (!name) return;
  leave();
  if (withBar) drawBar();
  drawPages(name);
  if (may("read")) drawAlias();
  document.title = `${PAGES[name].label} · semmem Studio`;
  const place = h("div", { class: "page" });
  fill(main, h("h1", {}, PAGES[name].label), place);
  if (who.unread && !who.user && !ABOUT_NOBODY.has(name) && may("read")) {
    leave = () => {};
    fill(place, failed(who.unread, async () => { fill(place, loading()); await somebody(); show(); }));
    return;
  }
  leave = PAGES[name].show(place, id, words) ?? (() => {});
}

// Where a page is about one user and none is named, the first who has memories. Who they all are takes long to say.
async function somebody() {
  if (ABOUT_NOBODY.has(current()[0]) || who.bound || who.user || !may("administer")) return;
  who.unread = null;
  try {
    who.user = (await get("/v1/memories", { limit: 1 })).memories[0]?.user_id ?? "";
  } catch (error) {
    if (error.status === 401) throw error;
    who.unread = error;
  }
}

async function start(problem, { trusted = false } = {}) {
  leave();
  leave = () => {};
  document.title = "semmem Studio";
  fill(bar);
  const again = (how) => start(null, how);
  if (!token.get() && !trusted) { signIn(main, problem, again); return; }
  fill(main, loading());
  try {
    const told = await get("/v1/whoami");
    Object.assign(who, { role: told.role, may: told.may, user: told.user_id ?? "", bound: told.user_id !== null, unread: null });
    await somebody();
    show();
  } catch (error) {
    token.set("");
    signIn(main, error, again);
  }
}

whenSignedOut((error) => {
  if (!bar.children.length) return;
  token.set("");
  toast("Signed out: semmem no longer knows the token.", { kind: "bad" });
  start(error);
});
addEventListener("hashchange", async () => {
  if (!bar.children.length) return;
  await somebody();
  show();
});
// What sticks below the bar has to know how high it is, and what ends above the toasts how high they are.
for (const [name, each] of [["--bar", bar], ["--toasts", document.getElementById("toasts")]]) {
  new ResizeObserver(() => document.documentElement.style.setProperty(name, `${each.offsetHeight}px`)).observe(each);
}
dress();
start();
