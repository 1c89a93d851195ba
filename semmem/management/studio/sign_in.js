// By a token of semmem's or the gateway's JSON Web Token; without either where a proxy in front says who somebody is.

import { token } from "./api.js";
import { button, fill, h } from "./dom.js";

export function signIn(place, problem, done) {
  const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true, spellcheck: "false", "aria-describedby": "token-hint" });
  const form = h("form", {
    class: "card sign-in",
    onsubmit: (event) => {
      event.preventDefault();
      token.set(input.value.trim());
      done({});
    },
  },
  h("h1", {}, "semmem Studio"),
  h("p", {}, "What semmem remembers, of whom, and why."),
  problem && h("p", { class: "failed", role: "alert" }, problem.message),
  h("label", { for: "token" }, "Token"), input,
  h("p", { class: "hint", id: "token-hint" }, "The administrator's, one that “semmem token create” made, or your gateway's JSON Web Token. It is kept for this tab alone."),
  h("button", { class: "button primary", type: "submit" }, "Sign in"),
  button("My proxy says who I am", () => done({ trusted: true }), { kind: "quiet" }));
  fill(place, form);
  input.focus();
}
