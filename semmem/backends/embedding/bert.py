"""A sentence-transformers folder with a BERT encoder: its sizes, and how its tokens become one vector.

Only what is known to make the vectors of the original is accepted. Everything else is refused with its reason, and is
for the library itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semmem.backends.embedding.weights import FOR_OTHER_MODELS
from semmem.ports.errors import EmbedderError

OLD_POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
"""Names of before sentence-transformers 6: a flag for each way."""
TASK = "feature-extraction"
PIPELINES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])


@dataclass(frozen=True, slots=True)
class Bert:
    """``tokens_max``: of a text, the special ones among them. ``prompt`` stands in front of every text."""

    layers: int
    heads: int
    width: int
    epsilon: float
    pad_id: int
    tokens_max: int
    pooling: str
    normalized: bool
    prompt: str


def read_bert(folder: Path) -> Bert:
    """Raises EmbedderError: this is another kind of model, or no model at all. Blocking."""
    try:
        config, modules = _read(folder / "config.json"), _read(folder / "modules.json")
        kinds = [each["type"].rpartition(".")[2] for each in modules]
        transformer = _read(folder / "sentence_bert_config.json", {})
        pooling = _read(folder / modules[1]["path"] / "config.json") if kinds in PIPELINES else {}
        prompt = _prompt(_read(folder / "config_sentence_transformers.json", {}))
        for reason in _reasons(config, kinds, transformer, pooling, prompt):
            raise refused(folder, reason)
        return Bert(
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            width=config["hidden_size"],
            epsilon=config.get("layer_norm_eps", 1e-12),
            pad_id=config.get("pad_token_id") or 0,
            tokens_max=_tokens_max(folder, config, transformer),
            pooling=_poolings(pooling)[0],
            normalized=kinds[-1] == "Normalize",
            prompt=prompt,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise refused(folder, f"{type(error).__name__}: {error}") from error


def refused(folder: Path, reason: str) -> EmbedderError:
    return EmbedderError(f"cannot write {folder} for ONNX Runtime: {reason}. {FOR_OTHER_MODELS}")


def _reasons(config: Any, kinds: list[str], transformer: Any, pooling: Any, prompt: str) -> Iterator[str]:
    """Why this is not a model of the kind that is written here."""
    if config.get("model_type") != "bert" or config.get("is_decoder"):
        yield f"it is no BERT encoder, but {config.get('model_type')}"
    if config.get("hidden_act") != "gelu" or config.get("position_embedding_type", "absolute") != "absolute":
        yield f"its layers are of another kind ({config.get('hidden_act')}, {config.get('position_embedding_type')})"
    if kinds not in PIPELINES:
        yield f"it is a pipeline of {', '.join(kinds)}"
    if transformer.get("do_lower_case") or transformer.get("transformer_task", TASK) != TASK:
        yield "its texts are prepared in another way (sentence_bert_config.json)"
    if len(_poolings(pooling)) != 1 or _poolings(pooling)[0] not in OLD_POOLINGS.values():
        yield f"its vectors are pooled by {', '.join(_poolings(pooling)) or 'nothing'}"
    if prompt and not pooling.get("include_prompt", True):
        yield "its prompt is left out of the vector"


def _poolings(config: Any) -> list[str]:
    told = config.get("pooling_mode")
    if told is not None:
        return [told] if isinstance(told, str) else list(told)
    flags = [name for name, is_on in config.items() if name.startswith("pooling_mode_") and is_on]
    return [OLD_POOLINGS.get(name, name) for name in flags]


def _prompt(config: Any) -> str:
    name = config.get("default_prompt_name")
    return str(config["prompts"][name]) if name else ""


def _tokens_max(folder: Path, config: Any, transformer: Any) -> int:
    """As configured for sentences, or else for the tokenizer; never more than there are positions."""
    told = transformer.get("max_seq_length") or _read(folder / "tokenizer_config.json", {}).get("model_max_length")
    positions: int = config["max_position_embeddings"]
    return min(int(told), positions) if told else positions


def _read(file: Path, otherwise: Any = None) -> Any:
    """``otherwise``: where there is no such file."""
    if otherwise is not None and not file.exists():
        return otherwise
    return json.loads(file.read_text(encoding="utf-8"))
