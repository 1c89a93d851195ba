// Calls of semmem's API. The token is kept for this tab alone and sent as a header, never as a cookie: another page
// cannot make a browser call in somebody's name.

const KEY = "semmem-token";
// What is read comes within this, or it is said that it did not. Exports and what a model is asked for may take longer.
const READ_MS = 60_000;

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

export let signedOut = () => {};
export const whenSignedOut = (act) => { signedOut = act; };

function problem(status, told) {
  const error = told?.error ?? told;
  if (status === 401) return new ApiError(401, "UNAUTHORIZED", "semmem does not know this token.");
  return new ApiError(status, error?.code ?? "", error?.message ?? error?.detail ?? `semmem answered ${status}.`);
}

async function answer(method, path, { query, body, text, keepalive, within } = {}) {
  const asked = new URLSearchParams(Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  const headers = {};
  if (token.get()) headers.authorization = `Bearer ${token.get()}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  if (text !== undefined) headers["content-type"] = "application/x-ndjson";
  const url = new URL(path, location.origin);
  url.search = asked.toString();
  const late = new AbortController(), timer = within && setTimeout(() => late.abort(), within);
  let response;
  try {
    response = await fetch(url, { method, headers, keepalive, body: body === undefined ? text : JSON.stringify(body), cache: "no-store", credentials: "omit", signal: late.signal });
  } catch {
    if (late.signal.aborted) throw new ApiError(0, "NO_ANSWER", "semmem did not answer within a minute.");
    throw new ApiError(0, "UNREACHABLE", "semmem cannot be reached. Is it running?");
  } finally {
    clearTimeout(timer);
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => null);
  const error = problem(response.status, told);
  if (error.status === 401) signedOut(error);
  throw error;
}

export const call = async (method, path, more) => (await answer(method, path, more)).json();
export const get = (path, query) => call("GET", path, { query, within: READ_MS });
export const post = (path, body) => call("POST", path, { body });
export const raw = async (path, query) => (await answer("GET", path, { query })).blob();
export const send = (path, text) => call("POST", path, { text });

// Who signed in, and whose memories are looked at. `unread`: why it is not known who has memories.
export const who = { role: "", may: [], user: "", bound: false, unread: null };
export const may = (act) => who.may.includes(act);
// A page's place in the address; `id`: of the one thing that it shows; `words`: those that it was found by.
export function link(name, id, words) {
  const user = who.bound ? "" : encodeURIComponent(who.user);
  return `#/${name}${user || id ? `/${user}` : ""}${id ? `/${encodeURIComponent(id)}` : ""}${id && words ? `/${encodeURIComponent(words)}` : ""}`;
}
export const ofUser = (more = {}) => ({ ...(who.bound ? {} : { user_id: who.user }), ...more });
