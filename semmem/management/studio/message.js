// One message of a conversation. Calls of tools and what they told are folded, long texts as well.

import { get, link, may, ofUser } from "./api.js";
import { button, chip, fill, h, loading, moment, number, unread } from "./dom.js";

const SPEAKERS = { user: "User", assistant: "Assistant", tool: "Tool", system: "System" };
const ENDS = new Set(["stop", "stop_sequence", "end_turn", "tool_calls", "tool_use", "completed"]);
const LONG_CHARS = 3000;
const LONG_LINES = 40;

// `calls`: names of tools by the id of their call, as far as the messages before this one tell. `marked(text)`: the text
// with what was looked for in it.
export function message(told, calls, marked = (text) => [text]) {
  for (const each of told.tool_calls) if (each.id) calls.set(each.id, each.name);
  return h("li", { class: `said ${told.role}`, tabIndex: -1, "data-id": told.id }, h("p", { class: "marks" }, h("b", {}, SPEAKERS[told.role] ?? told.role),
    h("time", { datetime: told.at }, moment(told.at)), told.role === "assistant" && answer(told),
    told.cut && chip("longer than is kept: cut", "warn")),
  told.role === "tool" ? folded(["Result", calls.get(told.tool_call_id)], told.content, marked) : words(told.content, marked),
  told.tool_calls.map((each) => folded(["Call", each.name], each.arguments)), told.in_prompt.length > 0 && may("read") && inPrompt(told.in_prompt));
}

// What the request of an answer was shown, as it is now; looked for only when somebody asks.
function inPrompt(ids) {
  const list = h("ul", { class: "shown" });
  const made = h("details", { class: "tool" }, h("summary", {}, `${number(ids.length)} ${ids.length === 1 ? "memory" : "memories"} in its prompt`), list);
  made.addEventListener("toggle", async () => {
    if (!made.open || list.children.length) return;
    fill(list, loading(1));
    fill(list, ...(await Promise.all(ids.map(shown))));
  });
  return made;
}

async function shown(id) {
  if (id.startsWith("conv_")) return h("li", {}, h("a", { href: link("conversations", id) }, "a former conversation"));
  try {
    return h("li", { dir: "auto" }, (await get(`/v1/memory/${encodeURIComponent(id)}`, ofUser())).content);
  } catch (error) {
    return h("li", { class: "hint" }, error.status === 404 ? "One that is no more." : unread("One of them"));
  }
}

function answer(told) {
  const model = told.model ?? told.model_asked;
  const tokens = [told.tokens_in !== null && `${number(told.tokens_in)} tokens in`, told.tokens_out !== null && `${number(told.tokens_out)} out`].filter(Boolean);
  return [model && chip(model, "name"), told.model && told.model_asked && told.model !== told.model_asked && h("span", {}, `asked for ${told.model_asked}`),
    told.backend && h("span", {}, `served by ${told.backend}`), tokens.length > 0 && h("span", {}, tokens.join(", ")),
    told.finish_reason && !ENDS.has(told.finish_reason) && chip(`ended: ${told.finish_reason.replaceAll("_", " ")}`, "warn")];
}

// Nothing that was looked for stays folded.
export function reveal(said) {
  for (const each of said.querySelectorAll("details")) if (each.querySelector("mark")) each.open = true;
  if (said.querySelector(".words.long mark")) said.querySelector(".words.long + .button").click();
}

function words(content, marked) {
  if (!content) return null;
  const text = h("div", { class: "words", dir: "auto" }, marked(content));
  if (content.length <= LONG_CHARS && content.split("\n", LONG_LINES + 1).length <= LONG_LINES) return text;
  text.classList.add("long");
  const label = (open) => (open ? "Show less" : `Show all ${number(content.length)} characters`);
  const more = button(label(false), () => {
    const open = !text.classList.toggle("long");
    more.textContent = label(open);
    more.setAttribute("aria-expanded", String(open));
    if (!open) more.scrollIntoView({ block: "nearest" });
  }, { kind: "quiet" });
  more.setAttribute("aria-expanded", "false");
  return [text, more];
}

function folded([what, name], text, marked = (told) => [told]) {
  return h("details", { class: "tool" }, h("summary", {}, what, name && [" of ", h("code", {}, h("bdi", {}, name))]),
    text ? h("pre", { tabIndex: 0 }, marked(text)) : h("p", { class: "hint" }, "Empty."));
}
