// What one version of a text says otherwise than the one before, word by word.

import { h } from "./dom.js";

const CELLS_MAX = 1_000_000;
const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });
const split = (text) => [...WORDS.segment(text)].map((each) => each.segment);

// The text of both: what went is struck out, what came underlined, and either is called so for whoever hears it.
export function changes(before, after) {
  return joined(compared(split(before), split(after))).flatMap(([kind, text]) => (kind === "same" ? [text]
    : [h(kind === "went" ? "del" : "ins", {}, h("span", { class: "hidden" }, kind === "went" ? " removed: " : " added: "), text, h("span", { class: "hidden" }, "; "))]));
}

function compared(old, now) {
  let start = 0, end = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const same = (words) => words.map((word) => ["same", word]);
  return [...same(old.slice(0, start)), ...middle(old.slice(start, old.length - end), now.slice(start, now.length - end)), ...same(end ? old.slice(-end) : [])];
}

// By the longest words in common; where that is too much to look for, all of it went and came.
function middle(old, now) {
  if (old.length * now.length > CELLS_MAX) return [["went", old.join("")], ["came", now.join("")]];
  const width = now.length + 1, common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = old[i] === now[j] ? 1 + common[(i + 1) * width + j + 1] : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const told = [];
  for (let i = 0, j = 0; i < old.length || j < now.length;) {
    if (i < old.length && j < now.length && old[i] === now[j]) { told.push(["same", old[i]]); i += 1; j += 1; }
    else if (j === now.length || (i < old.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) { told.push(["went", old[i]]); i += 1; }
    else { told.push(["came", now[j]]); j += 1; }
  }
  return told;
}

// Words that went or came one after the other are one change, also where a space between them stayed.
function joined(words) {
  const told = [];
  let went = "", came = "", space = "";
  const flush = () => {
    if (went) told.push(["went", went]);
    if (came) told.push(["came", came]);
    told.push(["same", space]);
    went = came = space = "";
  };
  for (const [kind, word] of words) {
    if (kind === "same" && !word.trim() && (went || came)) { space += word; continue; }
    if (kind === "same") { flush(); told.push(["same", word]); continue; }
    if (space) { went += went && space; came += came && space; space = ""; }
    if (kind === "went") went += word;
    else came += word;
  }
  flush();
  return told.filter(([, text]) => text);
}
