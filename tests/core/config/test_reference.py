"""config.yaml and docs/configuration.md say what the schema says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from semmem.config import Settings, effective, load, schema
from semmem.config.problems import is_secret
from semmem.config.rules import conflicts
from tests.support.configuration import at, loaded, problems
from tests.support.configuration_pages import about, configuration_table

HOME = Path(__file__).parents[3]
SHIPPED = HOME / "config.yaml"


def test_the_shipped_file_is_the_default_configuration() -> None:
    assert load(SHIPPED, {}) == Settings()


def test_no_file_and_an_empty_file_are_the_default_configuration(tmp_path: Path) -> None:
    assert load(None, {}) == Settings()
    assert loaded(tmp_path, "# nothing\n") == Settings()


def test_the_defaults_break_no_rule() -> None:
    assert list(conflicts(Settings())) == []


@pytest.mark.parametrize("path", [path for path, *_ in schema.leaves() if "N" not in path], ids=".".join)
def test_every_key_stands_in_the_shipped_file_with_its_default(path: tuple[str, ...]) -> None:
    assert at(shipped(), path) == at(defaults(), path)


@cache
def shipped() -> Any:
    return yaml.safe_load(SHIPPED.read_text())


@cache
def defaults() -> Any:
    return effective(Settings())


def test_the_shipped_file_has_a_commented_model_that_names_every_key_and_loads(tmp_path: Path) -> None:
    commented = SHIPPED.read_text().split("# external_models:\n")[1].split("\nexternal_models: []")[0]
    example = "\n".join(line.removeprefix("# ") for line in commented.splitlines())
    model = loaded(tmp_path, f"external_models:\n{example}").external_models[0]
    assert (model.model_role, model.llm_endpoint.base_url, model.llm_model_name) == (
        "memory_extraction",
        "http://qwen:8000/v1",
        "qwen3",
    )
    for path, *_ in schema.leaves():
        if "N" in path and path[0] == "external_models":
            assert f"{path[-1]}:" in commented


def test_the_shipped_file_has_a_commented_price_that_names_every_key_and_loads(tmp_path: Path) -> None:
    commented = SHIPPED.read_text().split("  # prices: ")[1].split("\n", 1)[1].split("\n  prices: []")[0]
    example = "\n".join(line.replace("# ", "", 1) for line in commented.splitlines())
    price = loaded(tmp_path, f"usage:\n  prices:\n{example}").usage.prices[0]
    assert (price.model, price.provider, price.output_per_million) == ("gpt-4o*", "openai", 10)
    assert all(f"{path[-1]}:" in commented for path, *_ in schema.leaves() if path[:3] == ("usage", "prices", "N"))


def test_the_reference_is_the_schemas() -> None:
    page = (HOME / "docs" / "configuration.md").read_text()
    assert page.endswith(configuration_table()), (
        "put the output of tests.support.configuration_pages under `# Every key`"
    )


def test_the_example_of_an_error_in_the_reference_is_what_is_printed(tmp_path: Path) -> None:
    page = (HOME / "docs" / "configuration.md").read_text()
    example = re.search(r"```text\n(.+?)```", page, re.DOTALL)
    text = "memory:\n\n  milvus:\n    dimention: 768\n\ndeadlines:\n  phase_ms: 900\n"
    found = problems(tmp_path, text, {"SEMMEM_MEMORY__DEFAULT_RETRIEVAL_LIMIT": "500"})
    assert example is not None
    assert sorted(example[1].splitlines()) == sorted(map(str, found))


@pytest.mark.parametrize("leaf", list(schema.leaves()), ids=lambda leaf: ".".join(leaf.path)[:60])
def test_every_key_says_what_it_does(leaf: schema.Leaf) -> None:
    said = about(leaf)
    assert said
    assert not said.endswith(".")
    assert "|" not in said


def test_every_secret_is_named_like_one_so_that_a_refusal_redacts_it() -> None:
    secrets = [path for path, field, _ in schema.leaves() if field.annotation is SecretStr]
    assert len(secrets) == 13
    assert all(is_secret(path) for path in secrets)


def test_durations_and_sizes_carry_their_unit_in_the_reference() -> None:
    rows = {line.split("|")[1].strip(" `"): line.split("|")[2].strip() for line in table_rows()}
    assert rows["memory.extraction.lease_s"] == "above 0 to 86400 seconds (`120`)"
    assert rows["deadlines.store_ms"] == "1 to 60000 milliseconds (`200`)"
    assert rows["journal.retention_days"] == "0 to 36500 days (`7`)"
    assert rows["limits.answer_bytes_max"] == "256 to 16777216 bytes (`65536`)"
    assert rows["memory.write_screen.fact_chars_min"] == "1 to 100 characters (`3`)"
    assert rows["memory.injection.max_inject_tokens"] == "0 to 16000 tokens (`2000`)"
    assert rows["external_models.N.llm_timeout_seconds"] == "above 0 to 86400 seconds (`30`)"
    assert rows["listeners.api.rate_limit.calls_per_s"] == "0 to 1000000.0 a second (`200`)"
    assert rows["memory.hot_cache.staleness_s"] == "0 to 86400 seconds, or null (`null`)"
    assert rows["memory.enabled"] == "true or false (`true`)"


def test_a_key_that_takes_a_restart_says_so() -> None:
    rows = {line.split("|")[1].strip(" `"): line.split("|")[3].strip() for line in table_rows()}
    assert rows["data_dir"].startswith("*Restart.* ")
    assert not rows["memory.enabled"].startswith("*Restart.* ")


def table_rows() -> list[str]:
    return [line for line in configuration_table().splitlines() if line.startswith("| `")]
