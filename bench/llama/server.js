// Chat completions by llama.cpp, with the one prompt cache that every engine has: a context of one sequence, in which
// the tokens that a request has in common with what is there, from the first token on, are not evaluated again.
//
//     node server.js FOLDER MODEL THREADS
//
// FOLDER holds node_modules, MODEL is a GGUF file. Listens on a free port of loopback and says so: "llama ready PORT".
// One request at a time, the others wait. Answers are greedy: the likeliest token. SSE, or JSON; `usage` says how many
// tokens the prompt has and how many of them were in the cache.
//
// Left out: tools, content in parts, images, sampling, any cache of more than the last conversation.

import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const CONTEXT_TOKENS = 4096;
const BATCH_TOKENS = 512;
const BODY_BYTES_MAX = 1 << 20;
const ANSWER_TOKENS = 64;

const [folder, modelPath, threads] = process.argv.slice(2);
const library = (name) => import(pathToFileURL(join(folder, "node_modules", name, "dist", "index.js")));
const { getLlama } = await library("node-llama-cpp");
const { Template } = await library("@huggingface/jinja");

// build "never": the binary that the package brings, and no compiler
const llama = await getLlama({ gpu: false, build: "never", maxThreads: Number(threads), logLevel: "error" });
const model = await llama.loadModel({ modelPath });
const options = { sequences: 1, contextSize: CONTEXT_TOKENS, batchSize: BATCH_TOKENS, threads: Number(threads) };
const sequence = (await model.createContext(options)).getSequence();
const template = new Template(model.fileInfo.metadata.tokenizer.chat_template);

class Refused extends Error {}

function tokensOf(messages) {
  if (!Array.isArray(messages) || !messages.every((one) => typeof one?.content === "string")) {
    throw new Refused("messages with content as text are wanted");
  }
  return model.tokenize(template.render({ messages, add_generation_prompt: true }), true);
}

// Erases what differs. How many tokens of the prompt stay; the last one never, since its evaluation gives the answer.
async function kept(tokens) {
  await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
  return sequence.nextTokenIndex;
}

// Pieces of text as they come. Fills `told` with usage and finish_reason.
async function* answer(body, told, isGone) {
  const tokens = tokensOf(body.messages);
  const most = body.max_completion_tokens ?? body.max_tokens ?? ANSWER_TOKENS;
  if (tokens.length + most > CONTEXT_TOKENS) {
    throw new Refused(`${tokens.length} tokens and ${most} of an answer are more than ${CONTEXT_TOKENS}`);
  }
  const cached = await kept(tokens);
  const said = [];
  let text = "";
  told.finish_reason = "stop";
  for await (const token of sequence.evaluate(tokens.slice(cached), { temperature: 0 })) {
    said.push(token);
    const whole = model.detokenize(said);
    if (!whole.endsWith("\uFFFD")) {
      yield whole.slice(text.length); // a character may need several tokens
      text = whole;
    }
    if (said.length >= most || isGone()) {
      told.finish_reason = "length";
      break;
    }
  }
  told.usage = {
    prompt_tokens: tokens.length,
    completion_tokens: said.length,
    total_tokens: tokens.length + said.length,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

async function complete(body, response) {
  const told = {};
  const pieces = answer(body, told, () => response.destroyed);
  let piece = await pieces.next(); // what is refused is refused before the status is sent
  const head = { id: "chatcmpl-llama", created: Math.floor(Date.now() / 1000), model: body.model ?? "llama" };
  const chunk = (choices, more = {}) =>
    `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices, ...more })}\n\n`;
  const choice = (delta, finish_reason = null) => [{ index: 0, delta, finish_reason }];
  if (body.stream) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.write(chunk(choice({ role: "assistant", content: piece.value ?? "" })));
    while (!piece.done && !(piece = await pieces.next()).done) response.write(chunk(choice({ content: piece.value })));
    response.write(chunk(choice({}, told.finish_reason)));
    if (body.stream_options?.include_usage) response.write(chunk([], { usage: told.usage }));
    response.end("data: [DONE]\n\n");
    return;
  }
  let content = "";
  for (; !piece.done; piece = await pieces.next()) content += piece.value;
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: told.finish_reason }];
  send(response, 200, { ...head, object: "chat.completion", choices, usage: told.usage });
}

function send(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

async function bodyOf(request) {
  const parts = [];
  let bytes = 0;
  for await (const part of request) {
    if ((bytes += part.length) > BODY_BYTES_MAX) throw new Refused("the body is too large");
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw new Refused("the body is not JSON");
  }
}

let slot = Promise.resolve();

const server = createServer(async (request, response) => {
  const fail = (error) => {
    if (!(error instanceof Refused)) console.error(error);
    if (response.headersSent) response.destroy();
    else send(response, error instanceof Refused ? 400 : 500, { error: { message: String(error.message) } });
  };
  if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
    send(response, 404, { error: { message: "POST /v1/chat/completions is all there is" } });
    return;
  }
  try {
    const body = await bodyOf(request);
    slot = slot.then(() => complete(body, response)).catch(fail);
  } catch (error) {
    fail(error);
  }
});
server.listen(0, "127.0.0.1", () => console.log(`llama ready ${server.address().port}`));
