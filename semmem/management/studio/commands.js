// Commands to copy where there is nothing to see yet: for this address and this user, never with a token.

import { may, ofUser, token } from "./api.js";
import { button, empty, h, toast } from "./dom.js";

export function command(text, hint) {
  const code = h("code", {}, text);
  const copied = async () => {
    getSelection().selectAllChildren(code); // to be copied by hand where the browser does not let a page do it
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      if (!document.execCommand("copy")) return;
    }
    toast("Copied.");
  };
  return h("div", { class: "command" }, hint && h("p", { class: "hint" }, hint), h("pre", { tabIndex: 0 }, code), button("Copy", copied));
}

// A text as one word of a shell.
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curl(path, body, hint) {
  const signed = token.get() && `-H "authorization: Bearer $SEMMEM_TOKEN"`;
  const words = ["curl", quoted(location.origin + path), signed, "-H 'content-type: application/json'", "-d", quoted(JSON.stringify(body))];
  return command(words.filter(Boolean).join(" "), `${hint}${signed ? ", with your token in SEMMEM_TOKEN" : ""}:`);
}

export const added = (user) => may("write") && curl("/v1/memory", { ...(user ? { user_id: user } : ofUser()), content: "User likes oolong tea" }, "Or add one by a command");
export const doctor = (hint = "Why nothing comes through, where semmem and Envoy run:") => may("operate") && command(`semmem doctor --config config.yaml --api ${location.origin}`, hint);
export const setting = (name) => command(`${name}:\n  enabled: true`, "In config.yaml:");
// A page about one user, where none is named and nobody is known who could be.
export const whose = (what) => (may("administer")
  ? empty(`Whose ${what}?`, "Name a user above. Where there is none yet, say something through Envoy.", added("alice"))
  : empty(`Whose ${what}?`, "Name a user above."));
