// Why one is in the prompt, or not.
const REASONS = {
  kept: "It may help with this question.",
  correction: "It holds now, in place of what the prompt says already.",
  conversation: "The question asks for a former conversation, and this is one.",
  budget: "No room left in the token budget.",
  limit: "More memories than a request may have; others fit better.",
  below_threshold: "It does not seem to help with this question.",
  near_duplicate: "It says the same as one that is in the prompt.",
  already_said: "The conversation says it already.",
  not_active: "It is held back, or another took its place.",
  screened: "It reads like an order, or holds a secret.",
};

export function reason(word) {
  return REASONS[word] ?? word.replaceAll("_", " ");
}
