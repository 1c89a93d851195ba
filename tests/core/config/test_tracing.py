"""The ``tracing`` section: what is refused, and with which remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from semmem.config import load, remarks, surroundings
from tests.support.configuration import check, loaded, only, problems, write

COLLECTOR = "http://collector:4318/v1/traces"
LONG = "a-secret-that-is-long-enough"


@pytest.mark.parametrize(
    ("text", "path", "reason", "remedy"),
    [
        ("{endpoint: 'http://collector:4318'}", "endpoint", "has no path", "http://collector:4318/v1/traces"),
        ("{endpoint: 'http://collector:4318/'}", "endpoint", "has no path", "http://collector:4318/v1/traces"),
        ("{endpoint: 'collector:4317'}", "endpoint", "is not an http(s) URL", "write for example"),
        ("{credential: " + LONG + "}", "credential", "is sent nowhere", "set tracing.endpoint"),
        ("{content: true}", "content", "records nothing", "set tracing.endpoint"),
        ("{user_hmac_secret: short}", "user_hmac_secret", "has fewer than 16 characters", "openssl rand"),
        ("{sample_ratio: 1.5}", "sample_ratio", "is not a number from 0 to 1", "the default is 1.0"),
        ("{batch_max: 200, queue_max: 100}", "batch_max", "is more than tracing.queue_max (100)", "no more at a time"),
        ("{header: 'X Team'}", "header", "is not a lower-case header name", "write for example"),
    ],
)
def test_what_cannot_work_is_refused_with_a_reason_and_a_remedy(
    tmp_path: Path, text: str, path: str, reason: str, remedy: str
) -> None:
    problem = only(problems(tmp_path, f"tracing: {text}"))
    assert problem.path == f"tracing.{path}"
    assert reason in problem.reason
    assert remedy in problem.remedy
    assert "short" not in str(problem)


def test_a_credential_of_any_header_may_stand_in_the_environment(tmp_path: Path) -> None:
    text = f"tracing: {{endpoint: '{COLLECTOR}', header: x-team, credential_env: COLLECTOR_KEY}}"
    rules = loaded(tmp_path, text, {"COLLECTOR_KEY": LONG}).tracing
    assert (rules.header, rules.credential.get_secret_value()) == ("x-team", LONG)
    assert loaded(tmp_path, f"tracing: {{endpoint: '{COLLECTOR}', header: authorization}}").tracing.content is False


def test_a_package_and_a_file_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"data_dir: {tmp_path}/d\ntracing: {{endpoint: '{COLLECTOR}', ca_file: /no/such/file}}"
    config, environ = write(tmp_path, text), {"HOME": str(tmp_path)}
    problem = only(check(config, environ, here=True))
    assert (problem.path, problem.reason) == ("tracing.ca_file", "is no file that can be read")
    monkeypatch.setattr(surroundings, "TRACING_PACKAGES", ("opentelemetry-sdk", "no-such-package"))
    missing, _ = check(config, environ, here=True)
    assert missing.path == "tracing.endpoint"
    assert "opentelemetry-sdk and no-such-package" in missing.reason
    assert missing.remedy == "install them: pip install 'semmem[otel]'"


@pytest.mark.parametrize("content", ["true", "false"])
def test_that_content_leaves_is_remarked(tmp_path: Path, content: str) -> None:
    config = write(tmp_path, f"tracing: {{endpoint: '{COLLECTOR}', content: {content}}}")
    said = "\n".join(remarks(load(config, {}), {}, here=False))
    assert ("no erasure reaches it there" in said) is (content == "true")
