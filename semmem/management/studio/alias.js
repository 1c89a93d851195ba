// What a user is called: a label that an administrator gives, or the user. Everything else goes by the id.

import { call, get } from "./api.js";
import { dialog, field, h, toast } from "./dom.js";

const CHARS_MAX = 64;
const path = (user) => `/v1/users/${encodeURIComponent(user)}/alias`;

export const aliasOf = async (user) => (await get(path(user))).alias;

// Asks for another alias; once it is kept, whoever listens hears `named`, with user and alias (null: none any more).
export function askAlias(user, alias) {
  const input = h("input", { value: alias ?? "", maxLength: CHARS_MAX, autocomplete: "off", spellcheck: "false" });
  const made = dialog("Name", field(`What ${user} is called`, input, "A label, shown beside the id. Left empty, there is none."),
    ["Cancel", "quiet"], ["Save", "primary", async () => {
      try {
        const told = await call("PUT", path(user), { body: { alias: input.value } });
        dispatchEvent(new CustomEvent("named", { detail: { user, alias: told.alias } }));
        toast(told.alias ? `Named: ${told.alias}` : "The name is taken away.");
        return true;
      } catch (error) {
        toast(`Not changed: ${error.message}`, { kind: "bad", seconds: 10 });
        return false;
      }
    }]);
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") made.querySelector(".primary").click(); });
  input.select();
}
