// What is looked for in one conversation: where it is, one match after the other, and its words marked.

import { button, debounced, fill, h, moment } from "./dom.js";

const MARKS_MAX = 200;
const EXCERPT = 160;

// Every word of it, as far as the API looks for them.
const words = (text) => [...new Set(text.split(/\s+/).filter(Boolean))].slice(0, 8);

// Marks the words in a text that has all of them; of one text no more marks than anybody looks at.
export function marker(wanted) {
  const each = words(wanted).map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  if (!each.length) return (text) => [text];
  const all = each.map((word) => new RegExp(word, "iu"));
  const any = new RegExp(each.sort((a, b) => b.length - a.length).join("|"), "giu");
  return (text) => {
    if (!all.every((word) => word.test(text))) return [text];
    const parts = [];
    let from = 0, left = MARKS_MAX;
    for (const found of text.matchAll(any)) {
      if ((left -= 1) < 0) break;
      parts.push(text.slice(from, found.index), h("mark", {}, found[0]));
      from = found.index + found[0].length;
    }
    return [...parts, text.slice(from)];
  };
}

// `look(text)` answers the API's matches; `go(match, text)` shows one, and answers its element, or nothing where it is gone.
export function finder(text, { look, go, title, kept }) {
  const shown = h("span", {}), heard = h("span", { class: "hidden" });
  const told = h("p", { class: "count", role: "status" }, shown, heard);
  const input = h("input", { type: "search", value: text, maxLength: 500, autocomplete: "off", placeholder: "Find in this conversation", "aria-label": "Find in this conversation" });
  const steps = [button("Previous match", () => step(1), { kind: "quiet" }), button("Next match", () => step(-1), { kind: "quiet" })];
  let matches = [], total = 0, at = 0, asking = 0;

  function say(visible, spoken = "") {
    fill(shown, visible);
    fill(heard, spoken);
    for (const each of steps) each.disabled = matches.length < 2;
  }

  // The newest match, which the API names first. `focused`: whoever comes from a search is led to it.
  async function find(wanted, focused) {
    const mine = (asking += 1);
    text = wanted;
    kept(text);
    if (!words(text).length) { matches = []; say(""); go(null, ""); return; }
    try {
      const found = await look(text);
      if (mine !== asking) return;
      [matches, total, at] = [found.matches, found.total, 0];
      if (matches.length) await land(focused);
      else { say(marker(text)(title()).length > 1 ? "In the title alone" : "No message has all of it"); await go(null, text); }
    } catch (error) {
      if (mine === asking) { matches = []; say(error.message); }
    }
  }

  async function land(focused) {
    const mine = asking, match = matches[at];
    const said = await go(match, text);
    if (mine !== asking) return;
    const where = `Match ${total - at} of ${total}`;
    if (!said) { say(`${where} is gone`); return; }
    say(where, `, ${match.role}, ${moment(match.at)}: ${excerpt(said)}`);
    if (focused) said.focus({ preventScroll: true });
  }

  async function step(by) {
    if (!matches.length) return;
    at = (at + by + matches.length) % matches.length;
    try {
      await land(false);
    } catch (error) {
      say(error.message);
    }
  }

  input.addEventListener("input", debounced(() => find(input.value.trim(), false)));
  const form = h("form", { class: "find", role: "search", "aria-label": "In this conversation", onsubmit: (event) => event.preventDefault() }, input, told, h("div", { class: "row" }, steps));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(event.shiftKey ? 1 : -1);
  });
  say("");
  return { form, begin: () => find(text, true) };
}

function excerpt(said) {
  const mark = said.querySelector("mark"), all = mark?.parentElement.textContent ?? said.textContent;
  const from = Math.max(0, all.indexOf(mark?.textContent ?? "") - EXCERPT / 4);
  return all.slice(from, from + EXCERPT);
}
