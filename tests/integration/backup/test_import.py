"""``semmem import`` and ``export`` against a real semmem: whole files, hostile files, the same file twice."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from semmem.backup import lines
from tests.support.copies import argv, ask, body, earlier, memories_of, person, run, written
from tests.support.harness import ADMIN_TOKEN, SemmemProcess, semmem_process

PEOPLE = 3


@pytest.fixture(scope="module")
def semmem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SemmemProcess]:
    with semmem_process(tmp_path_factory.mktemp("import")) as running:
        yield running


def test_a_file_imported_twice_doubles_nothing_and_comes_out_as_it_went_in(
    semmem: SemmemProcess, tmp_path: Path
) -> None:
    path = written(tmp_path / "people.jsonl", PEOPLE)
    first, second = ask(semmem, "import", path), ask(semmem, "import", path)
    assert (first.code, first.told["imported"], first.told["versions"]) == (0, PEOPLE * 8, PEOPLE)
    assert (second.code, second.told["imported"], second.told["unchanged"]) == (0, 0, PEOPLE * 8)
    done = ask(semmem, "export", tmp_path / "out.jsonl")
    assert done.code == 0, done.err
    assert (done.told["users"], done.told["memories"], done.told["versions"]) == (PEOPLE, PEOPLE * 8, PEOPLE)
    assert sorted(body(tmp_path / "out.jsonl")[:-1]) == sorted(body(path)[:-1])
    one = ask(semmem, "export", tmp_path / "one.jsonl", "--user", person(1))
    assert (one.told["users"], one.told["memories"]) == (1, 8)


def test_a_newer_version_replaces_and_another_text_in_the_same_version_is_a_conflict(
    semmem: SemmemProcess, tmp_path: Path
) -> None:
    assert ask(semmem, "import", written(tmp_path / "people.jsonl", PEOPLE)).code == 0
    told = [earlier(memories_of(0)[2]), *memories_of(1)[3:5]]
    fields = {name: getattr(told[1], name) for name in told[1].__dataclass_fields__}
    newer = type(told[1])(**fields | {"version": 2, "content": "User gave up jazz"})
    fields = {name: getattr(told[2], name) for name in told[2].__dataclass_fields__}
    other = type(told[2])(**fields | {"content": "User never said so"})
    text = [lines.memory_line(each) for each in (told[0], newer, other)]
    header, end = lines.Header(lines.FORMAT, 0.0, "another model", 384, 2), lines.End(2, 3, 0)
    (tmp_path / "more.jsonl").write_bytes(b"".join([lines.digested(header), *text, lines.digested(end)]))
    done = ask(semmem, "import", tmp_path / "more.jsonl")
    assert (done.code, done.told["updated"], done.told["unchanged"], done.told["conflicts"]) == (1, 1, 1, [4])
    assert "User gave up jazz" in semmem.contents(person(1))
    assert "User never said so" not in semmem.contents(person(1))
    history = semmem.api("GET", f"/v1/memory/{newer.id}/history", params={"user_id": person(1)})
    assert [each["content"] for each in history["versions"]] == [told[1].content]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: [*text[:7], text[7].replace(b"User", b"USER", 1), *text[8:]], "line 8: the line was changed"),
        (lambda text: [*text[:5], b"{]\n", *text[6:]], "line 6: not a line of this format"),
        (lambda text: text[:-1], "its last line is missing"),
        (lambda text: [*text[:4], *text[5:]], "it tells of 3 users, 24 memories and 3 earlier versions"),
        (lambda text: text[1:], "line 1: the first line, and no other, says what the file is"),
        (lambda text: [*text, text[1]], "line 30: the first line"),
        (lambda text: [text[0], b"x" * 3_000_000 + b"\n", *text[1:]], "line 2: the line has"),
        (lambda _text: [], "is not whole"),
    ],
)
def test_a_file_with_one_wrong_line_changes_nothing_and_the_line_is_named(
    semmem: SemmemProcess, tmp_path: Path, spoil: Callable[[list[bytes]], list[bytes]], said: str
) -> None:
    whole = written(tmp_path / "people.jsonl", PEOPLE, first=20).read_bytes()
    path = tmp_path / "spoilt.jsonl"
    path.write_bytes(b"".join(spoil(whole.splitlines(keepends=True))))
    refused = ask(semmem, "import", path)
    assert refused.code == 1
    assert said in refused.err
    assert [semmem.memories(person(number)) for number in range(20, 20 + PEOPLE)] == [[]] * PEOPLE


def test_a_call_of_the_api_with_one_wrong_line_imports_none_of_its_lines(semmem: SemmemProcess) -> None:
    answer = semmem.http.post(
        f"{semmem.api_url}/v1/import",
        json={"signature": "", "lines": [lines.memory_line(memories_of(9)[0]).decode(), "{}"]},
        headers={"authorization": f"Bearer {ADMIN_TOKEN}"},
    )
    assert answer.status_code == 400
    assert "body.lines.1: not a line of this format" in answer.json()["error"]["message"]
    assert "nothing was imported" in answer.json()["error"]["message"]
    assert semmem.memories(person(9)) == []


def test_standard_output_and_standard_input_are_files_too(semmem: SemmemProcess, tmp_path: Path) -> None:
    assert ask(semmem, "import", written(tmp_path / "people.jsonl", 2, first=40)).code == 0
    config = semmem.data_dir.parent / "config.yaml"
    where = ("--config", str(config), "--api", semmem.api_url)
    exported = run("export", "-", "--user", person(40), *where)
    assert (exported.code, exported.err) == (0, "")
    told = exported.out.replace(person(40), person(42)).replace("mem_40_", "mem_42_")
    undigested = re.sub(r'"digest":"[0-9a-f]{16}",', "", told)
    again = subprocess.run(
        argv("import", "-", "--json", *where), input=undigested, capture_output=True, text=True, timeout=60
    )
    assert again.returncode == 0, again.stderr
    assert {"import": "-", "imported": 8}.items() <= json.loads(again.stdout).items()
    assert semmem.contents(person(42)) == semmem.contents(person(40))
    cut = subprocess.run(
        argv("import", "-", *where), input=undigested[:-20], capture_output=True, text=True, timeout=60
    )
    assert (cut.returncode, cut.stdout) == (1, "")
