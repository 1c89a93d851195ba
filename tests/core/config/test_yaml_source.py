"""YAML is read strictly, with line and column; hostile input never does more than be refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semmem.config import ConfigError, Settings, load, schema
from tests.support.configuration import check, only, problems, write
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("memory: {\n  enabled: ]", "config.yaml:2:12", "expected the node content, but found ']'"),
        ("memory:\n\tenabled: true", "config.yaml:2:1", r"found character '\t' that cannot start any token"),
        ("memory: \x07", "config.yaml:1:9", "a control character"),
        ("a: &a [*a]", "config.yaml:1:4", "found unconstructable recursive node"),
        ("a: !!int many", "config.yaml:1:4", "is not a valid value of its type"),
        ("a: !!python/object:os.system x", "config.yaml:1:4", "could not determine a constructor"),
        ("a: 1\n---\nb: 2", "config.yaml:2:1", "but found another document"),
    ],
)
def test_what_is_not_yaml_is_refused_with_line_and_column(tmp_path: Path, text: str, where: str, reason: str) -> None:
    problem = only(problems(tmp_path, text))
    assert problem.source == where
    assert reason in problem.reason
    assert problem.remedy


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    problem = only(problems(tmp_path, "memory:\n  enabled: true\n  opt_in: true\n  enabled: false\n"))
    assert str(problem) == "memory.enabled (config.yaml:4:3): is given twice, first in line 2; keep one of them"


def test_a_key_that_is_not_text_is_refused(tmp_path: Path) -> None:
    problem = only(problems(tmp_path, "memory:\n  on: true\n"))  # YAML 1.1 reads `on` as true
    assert str(problem) == "memory (config.yaml:2:3): has a key that is not text; put the key in quotes"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"- memory", "is not a mapping"),
        (b"memory: \xff", "byte 8 is not UTF-8"),
        (b"#" * (1024 * 1024 + 1), "is larger than 1 MiB"),
        (b"a: " + b"[" * 600, "is nested too deeply"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, raw: bytes, reason: str) -> None:
    assert only(problems(tmp_path, raw)).reason == reason


def test_a_missing_file_is_a_problem_and_not_the_defaults(tmp_path: Path) -> None:
    problem = only(check(tmp_path / "none.yaml", {}))
    assert problem.reason == "no such file or directory"
    assert problem.source.endswith("none.yaml")
    assert only(check(tmp_path, {})).reason == "is a directory"
    assert only(check(Path("a\0b"), {})).reason == "is not a file name"


def test_nested_aliases_are_not_expanded(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    assert len(problems(tmp_path, "\n".join(lines))) == 30


KEYS = sorted({part for path, *_ in schema.leaves() for part in path if part != "N"} | {"embedding_model", "zzz", "<<"})
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["10.0.0.1:80", "http://a:b@c", "memory_extraction", "x-user-id", "auto", "", "2" * 5000])
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=25,
)
ROOTS = st.dictionaries(st.sampled_from([*Settings.model_fields, "zzz"]), TREES, max_size=6)


def load_or_refuse(file: Path, environ: dict[str, str]) -> None:
    found = check(file, environ)
    if not found:
        load(file, environ)
        return
    with pytest.raises(ConfigError) as error:
        load(file, environ)
    assert list(error.value.problems) == found
    assert all(problem.reason and problem.remedy for problem in found)
    assert "object at 0x" not in str(error.value)


@given(tree=ROOTS)
@settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tree_loads_or_is_refused_in_order(tmp_path: Path, tree: dict[str, Any]) -> None:
    load_or_refuse(write(tmp_path, yaml.safe_dump(tree)), {})


@given(raw=st.binary(max_size=200) | st.text(alphabet="{}[]:,-&*a!<>|#'\" \n\t?@%0.", max_size=60).map(str.encode))
@settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_load_or_are_refused_in_order(tmp_path: Path, raw: bytes) -> None:
    load_or_refuse(write(tmp_path, raw), {})


NAMES = st.lists(st.sampled_from([*KEYS, "0", "1", "99999", ""]), min_size=1, max_size=5).map(
    lambda parts: "SEMMEM_" + "__".join(parts).upper()
)


@given(
    tree=ROOTS,
    environ=st.dictionaries(NAMES | st.text(max_size=5).map("SEMMEM_".__add__), st.text(max_size=12), max_size=5),
)
@settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_environment_loads_or_is_refused_in_order(
    tmp_path: Path, tree: dict[str, Any], environ: dict[str, str]
) -> None:
    load_or_refuse(write(tmp_path, yaml.safe_dump(tree)), environ)
