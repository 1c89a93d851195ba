"""Bodies of every shape through a real Envoy: take the injected piece out, and what the client wrote is left."""

from __future__ import annotations

import json
import secrets

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.dialects.injected_pieces import BLOCK, bodies_before
from tests.core.dialects.test_chat_request import MESSAGES, OTHER_NAMES, OWN, SPACE
from tests.support.examples import examples
from tests.support.harness import House

FACT = "My budget for the Hawaii trip is $10,000"
QUESTION = '{"role":"user", "content": "What\'s my budget for the trip?"}'

NUMBERS = st.sampled_from(["2.50", "-0.0", "1E+2", "123456789012345678901234567890", "0.1e-7"])
STRINGS = st.text(max_size=20).map(lambda text: json.dumps(text, ensure_ascii=len(text) % 2 == 0)) | st.sampled_from(
    [r'"\u00e9\ud83c\udfe8"', r'"\/"', r'"half \ud83d"', r'"\u0000"', r'"},{\"messages\":["']
)
VALUES = st.recursive(
    NUMBERS | STRINGS | st.sampled_from(["true", "null", "{}", "[ ]"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{' ,'.join(items)} ]")
        | st.lists(st.tuples(STRINGS, inner), max_size=3, unique_by=lambda pair: json.loads(pair[0])).map(
            lambda pairs: "{" + ", ".join(f"{name} :{value}" for name, value in pairs) + "}"
        )
    ),
    max_leaves=8,
)
TOOLS = st.just('[{"type":"function","function":{"name":"f","parameters":{"x":1.0}}}]')


@st.composite
def questions(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A chat body that ends with a question memory can answer, and the same without semmem's members."""
    said = [*draw(st.lists(MESSAGES, max_size=4)), QUESTION]
    gap = draw(SPACE) + "," + draw(SPACE)
    members = [f'"messages"{draw(SPACE)}:[{draw(SPACE)}{gap.join(said)}{draw(SPACE)}]']
    names = draw(st.lists(st.sampled_from(OTHER_NAMES), max_size=5, unique=True))
    members += [f'"{name}"{draw(SPACE)}:{draw(SPACE)}{draw(VALUES)}' for name in names]
    if "tools" not in [json.loads(f'"{name}"') for name in names]:  # a member that is named twice is another test
        members += [f'"tools": {draw(TOOLS)}'] * draw(st.integers(0, 1))
    own = [f'"{name}":{draw(st.just("{}") | NUMBERS)}' for name in sorted(draw(st.sets(st.sampled_from(OWN))))]
    order = draw(st.permutations(members + own))
    kept = [member for member in order if member not in own]
    lead, trail = "{" + draw(SPACE), draw(SPACE) + "}" + draw(SPACE)
    return ((lead + gap.join(order) + trail).encode(), (lead + gap.join(kept) + trail).encode())


@pytest.fixture(scope="module")
def asker(home: House) -> str:
    """A user whose memory answers the question."""
    user = f"asker-{secrets.token_hex(6)}"
    home.semmem.remember(user, FACT)
    return user


@settings(max_examples=examples(50), deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(drawn=questions())
def test_without_the_injected_piece_the_model_got_what_the_client_wrote(
    home: House, asker: str, drawn: tuple[bytes, bytes]
) -> None:
    body, without_own = drawn
    reply = home.send(body, user=asker)
    assert reply.outcome == "injected"
    assert reply.status == 200
    [block] = BLOCK.finditer(reply.prompt)
    assert b"Hawaii" in block[0]
    assert without_own in bodies_before(reply.prompt, *block.span())
