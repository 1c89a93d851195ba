// What somebody took away is hidden, and gone after some seconds, unless they undo it; at once where the page is left.

import { toast } from "./dom.js";

const UNDO_S = 8;
// What is hidden stays so in a list that is drawn anew.
const leaving = new Set();
export const isLeaving = (id) => leaving.has(id);

const short = (text) => (text.length > 60 ? `${text.slice(0, 57)}…` : text);

// Also where the list was drawn anew since.
function hide(id, hidden) {
  if (hidden) leaving.add(id);
  else leaving.delete(id);
  const here = document.querySelector(`.memory[data-id="${CSS.escape(id)}"]`);
  if (here) here.hidden = hidden;
  return here;
}

// `word`: what it is after that ("Forgotten"). `erase(keepalive)` calls the API; `done` is told that it did.
export function leave(id, word, words, erase, done) {
  hide(id, true);
  const go = async (keepalive) => {
    removeEventListener("pagehide", atOnce);
    try {
      await erase(keepalive);
      leaving.delete(id);
      if (!keepalive) done();
    } catch (error) {
      if (error.status !== 404) { hide(id, false); toast(`Not ${word.toLowerCase()}: ${error.message}`, { kind: "bad", seconds: 10 }); }
    }
  };
  const timer = setTimeout(() => go(false), UNDO_S * 1000);
  const atOnce = () => { clearTimeout(timer); go(true); };
  addEventListener("pagehide", atOnce);
  toast(`${word} in ${UNDO_S} seconds: “${short(words)}”`, {
    seconds: UNDO_S, action: "Undo", mark: "undo",
    act: () => { clearTimeout(timer); removeEventListener("pagehide", atOnce); hide(id, false)?.querySelector(".line, a").focus(); },
  });
}
