"""What a text says is worked out once."""

from __future__ import annotations

from semmem.text.digest import Remembered, digest, known_digest


def test_an_answer_is_worked_out_once_and_again_when_too_many_came_between() -> None:
    asked = list[tuple[str, ...]]()

    def of(*texts: str) -> int:
        asked.append(texts)
        return sum(map(len, texts))

    length = Remembered(of, entries_max=2)
    assert [length("one", "two"), length("one", "two"), length("four"), length("one", "two")] == [6, 6, 4, 6]
    assert asked == [("one", "two"), ("four",)]
    assert [length("seven"), length("one", "two")] == [5, 6]
    assert asked[2:] == [("seven",), ("one", "two")]


def test_a_digest_is_the_same_whether_or_not_it_is_remembered() -> None:
    for parts in ((), ("",), ("a", "b"), ("ab",), ("a\ud83d",), ("a", "b")):
        assert known_digest(*parts) == digest(*parts)
