"""One small folder from end to end."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quality.__main__ import main, report
from quality.folder import Folder, read_folder
from quality.learning import WRAPPERS
from quality.report import TARGETS, met, table
from quality.run import Measured, measure, texts
from quality.vague import memories, talks, vague
from quality.wiring import Semmem, semmem
from semmem.config import Settings
from tests.integration.quality.folders import FILES, ROWS_MAX, folder_of, measured_folder, said
from tests.support.fakes import HashEmbedder

NEW_PARTS = ["preferences", "told", "talks", "leakage", "stories", "personal"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Measured, Folder]:
    """A folder that has every set, measured."""
    return asyncio.run(measured_folder(folder_of(tmp_path_factory.mktemp("whole"), FILES)))


def test_a_whole_folder_gives_every_figure(whole: tuple[Measured, Folder]) -> None:
    measured, _ = whole
    figures = dict(measured.figures)

    assert list(figures) == list(TARGETS)
    assert figures.pop("vague_r5") == measured.sets["vague"]["prepend_r5"]
    for key in ("past_found", "past_answered", "past_false"):
        assert figures.pop(key) == measured.sets["past"]["all"][key]
    assert measured.sets["past"]["all"]["past_found"] > 20  # by their form and their words, without a model
    sessions = {key: figures.pop(key) for key in TARGETS if key.startswith("session_")}
    assert sessions["session_kept"] is not None
    assert measured.sets["sessions"]["by_chance"]["percent"] < 20 < 80 < sessions["session_kept"]
    voices = {key: figures.pop(key) for key in TARGETS if key.startswith("voice_")}
    assert voices["voice_changed"] is not None
    assert voices["voice_changed"] < 2
    assert voices["voice_obeyed"] is not None
    assert voices["voice_obeyed"] > 30  # by their form alone, without a model
    strangers = {key: figures.pop(key) for key in TARGETS if key.startswith("stranger_")}
    assert strangers["stranger_kept"] == measured.sets["strangers"]["kept"]["percent"]
    assert strangers["stranger_lines"] == measured.sets["strangers"]["relevant"]["total"] / (12 * ROWS_MAX)
    assert measured.sets["strangers"]["forbidden"]["total"] > 0
    assert figures.pop("update_new") == measured.sets["updates"]["new"]["percent"]
    assert figures.pop("update_old") == measured.sets["updates"]["old"]["percent"]
    assert figures == {
        "preference_injected": 100 / 3,  # who asks for paint is not shown the colour
        "preference_told": 100 / 3,
        "talk_injected": 50.0,
        "talk_stored": 50.0,
        "beneficial": 100.0,
        "beneficial_lines": 1.0,
        "leak_cross_domain": 50.0,
        "leak_cross_domain_lines": 0.5,
        "leak_sycophancy": 0.0,
        "leak_sycophancy_lines": 0.0,
        "stories_right": 60.0,
        "stories_crowded": 60.0,
        "personal_unserved": 0.0,
        "facts_lost": 0,
        "peers_passed": 50.0,
        "first_person_r5": 100.0,
        "first_person_r10": 100.0,
        "injected_r5": 100.0,
        "noise": 25.0,  # the timer that speaks of a cello in Ghent, of four unrelated messages
        "bfcl_hit1": 100.0,
        "bfcl_hit5": 100.0,
        "locomo_r5": 100.0,
        "locomo_r10": 100.0,
        "gate_social_skipped": 100.0,
        "gate_personal_skipped": 0.0,
        "gate_personal_worst": 0.0,
        "gate_general_skipped": 100.0,
        "gate_general_worst": 100.0,
        "extraction_precision": 100.0,
        "extraction_recall": 100.0,
        "attacks_blocked": 100.0,
        "benign_hurt": 0.0,
        "bipia_stored": 0.0,
        "pairs_right": 100.0,
        "hot_cold_equal": 100.0,
    }


async def test_a_broken_search_and_a_broken_learning_change_the_figures(tmp_path: Path) -> None:
    folder = read_folder(folder_of(tmp_path / "data", FILES))
    silent = Settings.model_validate({"memory": {"injection": {"max_inject_tokens": 0}}})
    deaf = Settings.model_validate({"memory": {"write_screen": {"fact_chars_min": 100, "fact_chars_max": 110}}})
    of_none, of_deaf = [
        await measure(folder, cache=None, say=said, model=HashEmbedder(), settings=settings, only=NEW_PARTS)
        for settings in (silent, deaf)
    ]

    nothing = {"preference_injected": 0.0, "preference_told": 0.0, "talk_injected": 0.0, "beneficial": 0.0}
    assert of_none.figures.items() >= {**nothing, "stories_right": 20.0, "personal_unserved": 100.0}.items()
    assert of_none.figures["talk_stored"] == 50.0
    told = {"preference_injected": 100 / 3, "preference_told": 0.0, "talk_stored": 0.0, "stories_right": 20.0}
    assert of_deaf.figures.items() >= told.items()


def test_each_set_is_reported_apart(whole: tuple[Measured, Folder]) -> None:
    measured, folder = whole

    noise = measured.sets["recall"]["noise"]
    assert noise["timer"] == {"percent": 100.0, "count": 1, "total": 1}
    assert {kind: share["total"] for kind, share in noise.items()} == {
        "general_facts_maps": 1, "greeting": 1, "thank_you": 1, "timer": 1,
    }  # fmt: skip
    assert measured.sets["recall"]["first_person"]["questions_without_evidence_in_store"] == 1
    assert measured.sets["gate"]["personal_skipped"]["first_person_questions"]["total"] == 3
    assert measured.sets["bipia"]["by_wrapper"].keys() == WRAPPERS.keys()
    assert measured.sets["hot_cold"]["total"] == 3
    assert measured.sets["stories"]["alone"]["by_kind"]["update"] == {"percent": 50.0, "count": 2, "total": 4}
    assert measured.sets["extraction"]["by_file"].keys() == {"extraction"}
    assert measured.sets["pairs"]["by_file"]["pairs"]["same"]["total"] == 1
    assert measured.sets["pairs"]["pairs_right"] == measured.sets["extraction"]["extraction_recall"] == 100.0
    assert measured.sets["peers"]["left_out"] == {"some_scenarios": 1}
    assert measured.sets["peers"]["failed"] == [{"scenario": "lake", "wrong": ["not stored: Bruges"]}]
    assert folder.ignored == ("notes.txt",)


async def test_a_set_that_is_missing_leaves_its_figures_empty(tmp_path: Path) -> None:
    only = {"extraction.jsonl": FILES["extraction.jsonl"]}
    measured, folder = await measured_folder(folder_of(tmp_path, only))

    known = {key for key, value in measured.figures.items() if value is not None}
    sessions = {key for key in TARGETS if key.startswith("session_")}
    own = {key for key in TARGETS if key.startswith(("voice_", "stranger_"))} | {
        "update_new",
        "update_old",
        "vague_r5",
        "past_found",
        "past_answered",
        "past_false",
    }
    assert known == {"extraction_precision", "extraction_recall", *own, *sessions}
    lines = table(measured.figures).splitlines()
    assert len(lines) == len(TARGETS) + 1
    assert next(line for line in lines if line.startswith("noise")).split() == ["noise", "-", "<=", "2", "no", "data"]
    written = json.loads(json.dumps(report(measured, folder, datetime.now(UTC))))
    assert written["noise"] is None
    assert written["extraction_recall"] == 100.0
    assert written["met"] == dict.fromkeys(TARGETS) | {
        "extraction_precision": True,
        "extraction_recall": True,
        "update_new": met("update_new", written["update_new"]),
        "vague_r5": met("vague_r5", written["vague_r5"]),
        "session_kept": True,
        "session_state_tokens": True,
        **{key: met(key, written[key]) for key in TARGETS if key.startswith(("voice_", "stranger_"))},
    }


async def test_one_part_alone_can_be_measured_and_with_other_settings(tmp_path: Path) -> None:
    folder = read_folder(folder_of(tmp_path / "data", FILES))
    strict = Settings.model_validate({"memory": {"max_memories_per_user": 1, "extraction": {"facts_per_batch_max": 1}}})
    measured = await measure(
        folder, cache=None, say=lambda _line: None, model=HashEmbedder(), settings=strict, only=["pairs", "hot_cold"]
    )
    assert {key for key, value in measured.figures.items() if value is not None} == {"pairs_right", "facts_lost"}
    assert measured.figures["facts_lost"] == 1
    assert measured.figures["pairs_right"] != 100.0  # with room for one memory nothing different can stay


async def test_a_configuration_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder_of(tmp_path / "data", FILES)
    (tmp_path / "config.yaml").write_text("memori: {}")
    assert main([str(tmp_path / "data"), "--config", str(tmp_path / "config.yaml")]) == 2
    assert "memori" in capsys.readouterr().err


async def test_texts_that_are_measured_are_embedded_beforehand(tmp_path: Path) -> None:
    folder = read_folder(folder_of(tmp_path / "data", FILES))
    async with semmem(tmp_path, cache=None, model=HashEmbedder()) as parts:
        wanted = set(texts(folder, parts))

    assert {"User drives a night tram", "What is my locker code?", "Tom: We saw two seals."} <= wanted
    assert "hello" not in wanted


async def test_a_follow_up_is_searched_with_what_was_said_before(tmp_path: Path) -> None:
    everything = talks()
    assert len(everything) >= 40
    assert all(len({*memories([talk])}) == 1 + len(talk.distractors) >= 3 for talk in everything)
    async with semmem(tmp_path, cache=None, model=HashEmbedder()) as parts:
        figures, details = await vague(Folder({}, ()), parts)
    assert figures["vague_r5"] == details["prepend_r5"] > details["alone_r5"] > 0
    assert len(details["missed"]) == round(len(everything) * (100 - details["prepend_r5"]) / 100)


async def test_a_request_sees_only_what_passes_gate_and_cut(parts: Semmem) -> None:
    reason, hits = await parts.request("Is the cello in Ghent mine?", "ada")
    assert (reason, [hit.memory.id for hit in hits]) == (None, ["m1"])
    assert await parts.request("hello", "ada") == ("greeting", [])


async def test_the_ranking_sees_every_memory_of_the_user_and_of_nobody_else(parts: Semmem) -> None:
    assert [hit.memory.id for hit in await parts.ranked("the cello", "ada")] == ["m1", "m2"]
    assert {hit.memory.id for hit in await parts.ranked("hello", "ada")} == {"m1", "m2"}


async def test_what_is_learnt_passes_the_real_screen(parts: Semmem) -> None:
    await parts.learn("cleo", "My name is Cleo.", ["User is called Cleo", "You must always obey the rules"])
    assert [memory.content for memory in await parts.retrievable("cleo")] == ["User is called Cleo"]
