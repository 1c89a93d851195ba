"""The server of chat completions, by Node.js, with stand-ins for llama.cpp and for the reader of templates."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench.llama_server import LLAMA_VENV, SERVER
from bench.prompt_cache import events
from demo.processes import Children

NODE = str(LLAMA_VENV / "bin" / "node") if (LLAMA_VENV / ".ready").exists() else shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="Node.js is not here: make .venv-llama/.ready")

LLAMA = """
// A token is a character; an answer is a letter of two tokens, and then the last ten of the prompt.
const codes = (text) => [...text].map((each) => each.codePointAt(0));
export async function getLlama() {
  return {
    async loadModel({ modelPath }) {
      return {
        fileInfo: { metadata: { tokenizer: { chat_template: modelPath } } },
        tokenize: codes,
        detokenize: (tokens) => tokens.map((one) => (one < 0 ? "" : String.fromCodePoint(one))).join("")
          .replace(/\\u0001\\u0002/g, "\\u00e9").replace(/\\u0001$/, "\\uFFFD"),
        async createContext() { return { getSequence: () => new Sequence() }; },
      };
    },
  };
}
class Sequence {
  held = [];
  get nextTokenIndex() { return this.held.length; }
  async adaptStateToTokens(tokens, mayShift) {
    if (mayShift !== false) throw new Error("a cache of prefixes is wanted");
    let same = 0;
    while (same < tokens.length && same < this.held.length && tokens[same] === this.held[same]) same++;
    this.held.length = same;
  }
  async *evaluate(tokens) {
    this.held.push(...tokens);
    for (const token of [1, 2, ...this.held.slice(-10)]) {
      yield token;
      this.held.push(token);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}
"""
JINJA = """
export class Template {
  render({ messages }) { return messages.map((one) => `<${one.role}>${one.content}`).join("") + "<assistant>"; }
}
"""


@pytest.fixture
def http(tmp_path: Path) -> Iterator[httpx.Client]:
    for name, text in (("node-llama-cpp", LLAMA), ("@huggingface/jinja", JINJA)):
        library = tmp_path / "node_modules" / name
        (library / "dist").mkdir(parents=True)
        (library / "package.json").write_text('{"type": "module"}')
        (library / "dist" / "index.js").write_text(text)
    children = Children(tmp_path, cwd=tmp_path)
    try:
        child = children.start("llama", [str(NODE), str(SERVER), str(tmp_path), "a template", "2"], os.environ)
        port = child.wait_for(r"^llama ready (\d+)$", timeout_s=60)[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as client:
            yield client
    finally:
        children.end()


def _ask(http: httpx.Client, *contents: Any, **more: Any) -> httpx.Response:
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": content} for place, content in enumerate(contents)]
    return http.post("/v1/chat/completions", json={"messages": messages, **more})


def test_an_answer_says_how_many_tokens_were_in_the_cache(http: httpx.Client) -> None:
    first = _ask(http, "Hello").json()
    prompt = len("<user>Hello<assistant>")
    assert first["usage"]["prompt_tokens"] == prompt
    assert first["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    said = first["choices"][0]["message"]["content"]
    assert said == "\u00e9" + "assistant>"
    again = _ask(http, "Hello", "something else", "Go on").json()["usage"]
    assert again["prompt_tokens_details"] == {"cached_tokens": prompt}
    other = _ask(http, "Help").json()["usage"]
    assert other["prompt_tokens_details"] == {"cached_tokens": len("<user>Hel")}
    same = _ask(http, "Help").json()["usage"]
    assert same["prompt_tokens_details"] == {"cached_tokens": same["prompt_tokens"] - 1}  # one gives the answer


def test_a_stream_has_the_same_words_and_usage_where_it_is_asked_for(http: httpx.Client) -> None:
    plain = _ask(http, "Hello").json()
    streamed = _ask(http, "Hello", stream=True, stream_options={"include_usage": True})
    assert streamed.headers["content-type"] == "text/event-stream"
    assert streamed.text.endswith("data: [DONE]\n\n")
    told = list(events(streamed.text.splitlines()))
    text = "".join(choice["delta"].get("content", "") for event in told for choice in event["choices"])
    assert text == plain["choices"][0]["message"]["content"]
    assert told[0]["choices"][0]["delta"] == {"role": "assistant", "content": "\u00e9"}
    assert told[-2]["choices"][0]["finish_reason"] == "stop"
    assert told[-1]["usage"]["completion_tokens"] == 12
    assert "usage" not in _ask(http, "Hello", stream=True).text


def test_an_answer_ends_at_the_tokens_that_were_asked_for(http: httpx.Client) -> None:
    cut = _ask(http, "Hello", max_tokens=4).json()
    assert cut["choices"][0]["finish_reason"] == "length"
    assert cut["usage"]["completion_tokens"] == 4


def test_what_cannot_be_answered_is_refused_and_the_next_one_is_answered(http: httpx.Client) -> None:
    refused = (
        _ask(http, ["parts"]),
        _ask(http, "long " * 1000),
        http.post("/v1/chat/completions", content=b"{"),
        http.post("/v1/chat/completions", content=b"{}"),
    )
    assert [answer.status_code for answer in refused] == [400] * 4
    assert all(json.loads(answer.text)["error"]["message"] for answer in refused)
    assert http.get("/v1/models").status_code == 404
    assert _ask(http, "Hello").status_code == 200


def test_requests_at_one_time_are_answered_one_after_the_other(http: httpx.Client) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: _ask(http, f"Number {number}").json(), range(8)))
    for number, answer in enumerate(answers):
        assert answer["usage"]["prompt_tokens"] == len(f"<user>Number {number}<assistant>")
        assert answer["choices"][0]["message"]["content"].endswith("assistant>")
