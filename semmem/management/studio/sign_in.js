// By a token of semmem's or the gateway's JSON Web Token; without either where a proxy in front says who somebody is.

import { token } from "./api.js";
import { fill, h } from "./dom.js";

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
  h("p", { class: "hint", id: "token-hint" }, "The administrator's is listeners.api.admin_token in config.yaml. Others are made by “semmem token create”, or are your gateway's JSON Web Token. It is kept for this tab alone."),
  h("button", { class: "button primary", type: "submit" }, "Sign in"),
  h("button", { type: "button", class: "button quiet", onclick: () => done({ trusted: true }), "aria-describedby": "proxy-hint" }, "Use my proxy's sign-in"),
  h("p", { class: "hint", id: "proxy-hint" }, "For where a proxy in front of semmem says in a header who you are (listeners.api.trusted_headers): no token is needed."));
  fill(place, form);
  input.focus();
}
