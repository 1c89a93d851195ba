// Two thumbs: whether a memory that was shown is of any use. They move what is shown, and delete nothing.

import { may, ofUser, post } from "./api.js";
import { h, svg, toast } from "./dom.js";

const HAND = "M2 9h3v9H2zM6.5 9 10 2c1.6 0 2.3 1 2.3 2.2V8h4.3a1.7 1.7 0 0 1 1.7 2l-1.3 6.4A2 2 0 0 1 15 18H6.5z";
const TOLD = { true: "Noted: it may be shown a little sooner.", false: "Noted: it is shown less, unless it is clearly asked for." };

export function thumbs(memory) {
  if (!may("write")) return null;
  const place = h("div", { class: "thumbs", role: "group", "aria-label": "Was this of any use?" });
  const pair = [thumb(true, "Helpful"), thumb(false, "Not helpful")];
  place.append(...pair);
  return place;

  function thumb(helpful, label) {
    const icon = svg("svg", { viewBox: "0 0 20 20", width: "16", height: "16", "aria-hidden": "true" }, svg("path", { d: HAND, fill: "currentColor" }));
    if (!helpful) icon.setAttribute("transform", "rotate(180)");
    const made = h("button", { type: "button", class: "button quiet thumb", title: label, "aria-label": label, "aria-pressed": "false", onclick: () => say(made, helpful) }, icon);
    return made;
  }

  async function say(pressed, helpful) {
    if (pressed.getAttribute("aria-pressed") === "true") return;
    try {
      await post("/v1/feedback", ofUser({ memory_ids: [memory.id], helpful }));
      for (const each of pair) each.setAttribute("aria-pressed", String(each === pressed));
      toast(TOLD[helpful]);
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  }
}
