"""Verdicts of filters before semmem, through a real Envoy: in dynamic metadata and in a header."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.harness import SHIPPED_EMBEDDER, House, Json, StandInModel, eventually, house

TYPES = "type.googleapis.com/envoy.extensions.filters.http"
FACT = "My budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the trip?"
GUARD, READER = "guard", "body.reader"

SIGNALS = {
    "blocked_metadata": [GUARD, "blocked"],
    "pii_metadata": [READER, "pii"],
    "pii_header": "x-pii",
    "fact_metadata": [GUARD, "fact"],
    "fact_header": "x-fact",
}

# A filter that has found out something from the headers, and one that reads bodies. What a real one would find out
# stands in the request itself, so that a test can say it.
FROM_HEADERS = {
    "name": "test.guard",
    "typed_config": {
        "@type": f"{TYPES}.header_to_metadata.v3.Config",
        "request_rules": [
            {
                "header": f"x-test-{name}",
                "on_header_present": {"metadata_namespace": GUARD, "key": name, "type": "STRING"},
                "remove": True,
            }
            for name in ("blocked", "fact")
        ],
    },
}
FROM_BODIES = {
    "name": "test.reader",
    "typed_config": {
        "@type": f"{TYPES}.json_to_metadata.v3.JsonToMetadata",
        "request_rules": {
            "rules": [
                {
                    "selectors": [{"key": "test_pii"}],
                    "on_present": {"metadata_namespace": READER, "key": "pii"},
                }
            ]
        },
    },
}


def judge(config: Json) -> None:
    """Put the two filters before semmem.mutate, and forward what they find out."""
    [listener] = config["static_resources"]["listeners"]
    filters = listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
    place = next(index for index, entry in enumerate(filters) if entry["name"] == "semmem.mutate")
    filters[place]["typed_config"]["metadata_options"]["forwarding_namespaces"]["untyped"] += [GUARD, READER]
    filters[place:place] = [FROM_HEADERS, FROM_BODIES]


@pytest.fixture(scope="module")
def judged(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house with two judging filters before semmem, which knows a question of general knowledge by its vector."""
    folder = tmp_path_factory.mktemp("judged")
    with house(folder, model, {"signals": SIGNALS}, judge, program=SHIPPED_EMBEDDER) as running:
        yield running


def body(**members: object) -> bytes:
    """A question, with a member that the model must not see whatever happens."""
    said = {"model": "stand-in", "messages": [{"role": "user", "content": QUESTION}], **members}
    return json.dumps({**said, "memory_config": {"retrieval_limit": 3}}).encode()


def without_own(sent: bytes) -> Json:
    found: Json = json.loads(sent)
    return {name: value for name, value in found.items() if name != "memory_config"}


@pytest.mark.parametrize(
    ("word", "headers", "members"),
    [
        ("blocked", {"x-test-blocked": "true"}, {}),
        ("pii", {}, {"test_pii": True}),
        ("pii", {"x-pii": "yes"}, {"test_pii": False}),
    ],
    ids=["metadata of the headers", "metadata of the body", "a header"],
)
def test_a_verdict_stops_reading_and_storing(
    judged: House, alice: str, word: str, headers: dict[str, str], members: dict[str, object]
) -> None:
    judged.semmem.remember(alice, FACT)
    sent = body(**members)

    reply = judged.send(sent, user=alice, headers=headers)

    assert (reply.status, reply.outcome) == (200, word)
    assert json.loads(reply.prompt) == without_own(sent)
    assert judged.send(body(), user=alice).outcome == "injected"
    turns = eventually(lambda: judged.semmem.turns(alice), within_s=60, what="the request nobody objects to is kept")
    assert [said for said, _ in turns] == [QUESTION]
    assert judged.semmem.metric("semmem_requests_total", outcome=word) >= 1


def test_a_fact_verdict_in_metadata_beats_the_header(judged: House, alice: str) -> None:
    question = "What is the capital of Peru?"
    asked = {"messages": [{"role": "user", "content": question}]}

    def outcome(**headers: str) -> str | None:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return judged.send(body(**asked), user=alice, headers=sent).outcome

    assert outcome() == "general_fact"
    assert outcome(x_fact="false") == "no_hits"
    assert outcome(x_fact="false", x_test_fact="true") == "general_fact"
    assert outcome(x_fact="true", x_test_fact="0") == "no_hits"
