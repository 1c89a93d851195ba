// What the word means that a request ended with.

const MEANINGS = {
  injected: "memories are in the prompt",
  cold_dense: "memories are in the prompt, ranked by the store alone: the user's were not loaded in time",
  degraded: "no vector could be made: memories were found by words, or are the newest",
  embedder_busy: "the question was not embedded in time: memories were looked for by words",
  no_hits: "searched, and nothing fits",
  greeting: "nothing but courtesy",
  general_fact: "a question that no memory can answer",
  tool_turn: "a tool answers",
  repeated: "all that fits stands in the prompt already",
  already_injected: "a gateway before this one has added memories",
  no_question: "there is no user message to search for",
  write_only: "it asked for no memories, and was learnt from",
  opted_out: "the configuration, a header or the request said no",
  reading_off: "reading is switched off for this user",
  switched_off: "a switch of an administrator's left nothing to do",
  blocked: "an earlier filter refuses it",
  pii: "an earlier filter found personal data in it",
  anonymous: "nobody is known to be asking",
  timeout: "semmem's own deadline passed: it went on without memories",
  store_down: "the store could not be asked",
  store_timeout: "the store did not answer in time",
  embedder_down: "no vector could be made, and nothing recent was there",
  malformed: "not a request of this API",
  oversize: "larger than semmem reads",
  compressed: "in a content encoding that semmem does not read",
  other_path: "not an API that semmem knows",
};

const GOOD = new Set(["injected", "repeated"]);
const BAD = /timeout|down|busy|degraded|malformed|oversize/;

export const spoken = (outcome) => outcome.replaceAll("_", " ");
export const meaning = (outcome) => MEANINGS[outcome] ?? "";
export const kind = (outcome) => (GOOD.has(outcome) ? "good" : BAD.test(outcome) ? "bad" : "");

// Choices for a filter: all words, in the order in which they are told.
export const OUTCOMES = [["", "All outcomes"], ...Object.keys(MEANINGS).map((word) => [word, spoken(word)])];
