"""``semmem calibrate`` and ``signals.weights``: weights for another embedding model, and files that are none."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from semmem.cli import main
from semmem.commands.command import Exit
from semmem.config import Settings
from semmem.memory import Vector
from semmem.ports.errors import EmbedderError
from semmem.retrieval.decide import scenes
from semmem.retrieval.decide.trained import Trained
from semmem.wiring import calibration
from semmem.wiring.calibration import NO_LEARNER, NotCalibrated, calibrate
from semmem.wiring.request import decision
from tests.core.retrieval.decide.test_fitting import material
from tests.support.decisions import weights
from tests.support.fakes import HashEmbedder


class Small(HashEmbedder):
    """Counts what it embeds, and can be broken."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__(32)
        self.fails = fails
        self.embedded: list[str] = []
        self.is_open = False

    async def open(self) -> None:
        if self.fails:
            raise EmbedderError("no such model")
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        assert self.is_open
        self.embedded.append(text)
        return await super().embed(text)


@pytest.fixture(autouse=True)
def _of_a_few_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "material", material)


def use(monkeypatch: pytest.MonkeyPatch, model: Small) -> Small:
    monkeypatch.setattr(calibration, "embedder", lambda _settings: model)
    return model


async def test_what_was_calibrated_is_what_is_decided_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, file, told = use(monkeypatch, Small()), tmp_path / "own.npz", list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a solver that stops early
        await calibrate(Settings(), file, told.append)
    assert Trained.load(file).signature == model.signature == "hash/words/32"
    made = decision(Settings.model_validate({"signals": {"weights": str(file)}}), model.signature)
    assert made.cut == Trained.load(file).memory_cut
    assert len(model.embedded) == len(set(model.embedded))
    assert not model.is_open
    assert told[-1] == f"{file}: written for hash/words/32"


async def test_progress_holds_no_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, told = use(monkeypatch, Small()), list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await calibrate(Settings(), tmp_path / "own.npz", told.append)
    assert len(told) == 3
    assert not [text for text in model.embedded for line in told if text in line]


def test_an_embedder_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Small(fails=True))
    assert main(["calibrate", "--out", str(tmp_path / "own.npz")]) == Exit.NOT_DONE
    assert capsys.readouterr().err == "semmem calibrate: not calibrated: no such model\n"
    assert list(tmp_path.iterdir()) == []


async def test_without_scikit_learn_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = use(monkeypatch, Small())
    monkeypatch.delitem(sys.modules, "semmem.retrieval.decide.scenes")
    monkeypatch.delattr("semmem.retrieval.decide.scenes")
    monkeypatch.delitem(sys.modules, "semmem.retrieval.decide.fitting")
    monkeypatch.delattr("semmem.retrieval.decide.fitting")
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(NotCalibrated, match="scikit-learn") as refused:
        await calibrate(Settings(), tmp_path / "own.npz", lambda _line: None)
    assert str(refused.value) == NO_LEARNER
    assert model.embedded == []


async def test_a_file_that_cannot_be_written_is_said_before_anything_is_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = use(monkeypatch, Small())
    with pytest.raises(NotCalibrated, match=r"nowhere/own\.npz"):
        await calibrate(Settings(), tmp_path / "nowhere" / "own.npz", lambda _line: None)
    assert model.embedded == []


def test_a_configuration_that_is_wrong_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "semmem.yaml"
    config.write_text("memory: {default_retrieval_limit: many}")
    assert main(["calibrate", "--config", str(config), "--out", str(tmp_path / "own.npz")]) == Exit.MISUSED
    assert "default_retrieval_limit" in capsys.readouterr().err


# --- signals.weights -------------------------------------------------------------------------------------------------


def configured(tmp_path: Path) -> Path:
    config = tmp_path / "semmem.yaml"
    config.write_text(f"data_dir: {tmp_path / 'data'}\nsignals: {{weights: '{tmp_path / 'own.npz'}'}}\n")
    return config


@pytest.mark.parametrize("content", [None, b"", b"no weights"], ids=["missing", "empty", "text"])
@pytest.mark.parametrize("command", [["check"], ["serve", "--config"]], ids=["check", "serve"])
def test_a_file_without_weights_is_a_problem_of_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, command: list[str]
) -> None:
    if content is not None:
        (tmp_path / "own.npz").write_bytes(content)
    assert main([*command, str(configured(tmp_path))]) == Exit.MISUSED
    told = capsys.readouterr().err
    assert "signals.weights: " in told
    assert str(tmp_path / "own.npz") in told
    assert "semmem calibrate" in told


def test_weights_are_no_problem_and_what_is_elsewhere_is_not_looked_for(tmp_path: Path) -> None:
    config = configured(tmp_path)
    assert main(["check", "--elsewhere", str(config)]) == 0
    weights(8).save(tmp_path / "own.npz")
    assert main(["check", str(config)]) == 0
