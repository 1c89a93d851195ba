"""A sentence-transformers folder with a BERT encoder: its sizes, how its tokens become one vector, and BERT in ONNX's
words.

Only what is known to make the vectors of the original is accepted. Everything else is refused with its reason, and is
for the library itself.

The graph has one node for each step of BERT's paper, written from the weights as they lie, of standard operators only.
ONNX Runtime fuses what it can by itself, and its own fused ones (Attention, SkipLayerNormalization) are no faster on a
CPU; docs/decisions/0040 has the figures."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semmem.backends.embedding.weights import FOR_OTHER_MODELS
from semmem.ports.errors import EmbedderError

OLD_POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
"""Names of before sentence-transformers 6: a flag for each way."""
TASK = "feature-extraction"
PIPELINES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])

OPSET, IR_VERSION = 20, 9
"""The first with Gelu, and ONNX's format of its time."""
INPUTS = ("input_ids", "attention_mask")
NOT_NEEDED = ("embeddings.position_ids", "pooler.", "cls.")
"""Weights of tasks that BERT was trained by, and numbers from 0 upwards."""
WORDS, NIBBLES, SCALES = (f"embeddings.word_embeddings.{name}" for name in ("weight", "nibbles", "scales"))
CENTRE = "centre"
"""What is taken from every vector, where there is such a weight."""
LENGTH_MIN, COUNT_MIN = 1e-12, 1e-9
"""What a length and a number of tokens are at least, so that nothing is divided by zero."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Bert:
    """``tokens_max``: of a text, the special ones among them. ``prompt`` stands in front of every text."""

    layers: int
    heads: int
    width: int
    epsilon: float
    tokens_max: int
    pooling: str
    normalized: bool
    prompt: str


@dataclass(frozen=True, slots=True)
class Source:
    """What a model is made of: its weights by BERT's names, and what writes its tokenizer into a folder. Blocking."""

    bert: Bert
    weights: Callable[[], Mapping[str, Array]]
    write_tokenizer: Callable[[Path], None]


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


def bert_graph(bert: Bert, weights: Mapping[str, Array]) -> Any:
    """The onnx.ModelProto: ``input_ids`` and ``attention_mask`` of texts to ``embedding``. Raises KeyError: a weight is
    missing; ValueError: one is not used, so this is not the model that was described."""
    from onnx import TensorProto, helper

    graph = _Graph(weights)
    tokens = _pooled(graph, bert, _encoded(graph, bert))
    graph.put("Identity", tokens, named="embedding")
    if unused := graph.unused():
        raise ValueError(f"nothing is known of its weights {', '.join(sorted(unused)[:3])}")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in INPUTS]
    output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["texts", bert.width])
    made = helper.make_graph(graph.nodes, "bert", inputs, [output], list(graph.constants.values()))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


class _Graph:
    """Nodes as they are put, each with a name for what it makes."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self._weights = {name.removeprefix("bert."): values for name, values in weights.items()}
        self._used: set[str] = set()

    def put(self, kind: str, *inputs: str, named: str = "", **attributes: Any) -> str:
        from onnx import helper

        made = named or f"{kind}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [made], **attributes))
        return made

    def constant(self, name: str, values: npt.ArrayLike, kind: npt.DTypeLike = np.float32) -> str:
        from onnx import numpy_helper

        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.array(values, dtype=kind, order="C"), name)
        return name

    def whole(self, name: str, *numbers: int) -> str:
        """A constant of whole numbers, as shapes and axes are."""
        return self.constant(name, numbers, np.int64)

    def taken(self, name: str) -> Array:
        """A weight, which is used by that."""
        self._used.add(name)
        return self._weights[name]

    def weight(self, name: str) -> str:
        return self.constant(name, self.taken(name))

    def packed(self, name: str) -> str:
        """A weight in the kind of numbers that it is kept in."""
        values = self.taken(name)
        return self.constant(name, values, values.dtype)

    def has(self, name: str) -> bool:
        return name in self._weights

    def unused(self) -> set[str]:
        return {name for name in self._weights.keys() - self._used if not name.startswith(NOT_NEEDED)}

    def linear(self, name: str, tokens: str) -> str:
        matrix = self.constant(f"{name}.weight", self.taken(f"{name}.weight").T)
        return self.put("Add", self.put("MatMul", tokens, matrix), self.weight(f"{name}.bias"))

    def norm(self, name: str, tokens: str, epsilon: float) -> str:
        scale, shift = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.put("LayerNormalization", tokens, scale, shift, axis=-1, epsilon=epsilon)


def _encoded(graph: _Graph, bert: Bert) -> str:
    """A vector for each token."""
    ids, mask = INPUTS
    words = _packed_words(graph, bert, ids) if graph.has(NIBBLES) else graph.put("Gather", graph.weight(WORDS), ids)
    # One text at a time is read, so every token is of the first type.
    type_ = graph.constant("type", graph.taken("embeddings.token_type_embeddings.weight")[0])
    start, end = graph.whole("start", 0), graph.put("Shape", ids, start=1, end=2)
    places = graph.put("Slice", graph.weight("embeddings.position_embeddings.weight"), start, end)
    summed = graph.put("Add", graph.put("Add", words, type_), places)
    tokens = graph.norm("embeddings.LayerNorm", summed, bert.epsilon)
    hidden = _hidden(graph, mask)
    for layer in range(bert.layers):
        tokens = _layer(graph, bert, f"encoder.layer.{layer}", tokens, hidden)
    return tokens


def _packed_words(graph: _Graph, bert: Bert, ids: str) -> str:
    """A vector for each token, out of a table that stays packed (e5.py)."""
    from onnx import TensorProto

    bits = graph.put("Gather", graph.packed(NIBBLES), ids)
    low = graph.put("BitwiseAnd", bits, graph.constant("lower half", 15, np.uint8))
    high = graph.put("BitShift", bits, graph.constant("half", 4, np.uint8), direction="RIGHT")
    both = graph.put("Cast", graph.put("Concat", low, high, axis=-1), to=TensorProto.FLOAT)
    scales = graph.put("Cast", graph.put("Gather", graph.packed(SCALES), ids), to=TensorProto.FLOAT)
    scales = graph.put("Unsqueeze", scales, graph.whole("last", -1))
    numbers = graph.put("Mul", graph.put("Sub", both, graph.constant("zero", 8.0)), scales)
    return graph.put("Reshape", numbers, graph.whole("joined", 0, 0, bert.width))


def _hidden(graph: _Graph, mask: str) -> str:
    """What is added to each token's weight: nothing, or so much that padding is not looked at."""
    from onnx import TensorProto

    seen = graph.put("Unsqueeze", graph.put("Cast", mask, to=TensorProto.FLOAT), graph.whole("middle", 1, 2))
    unseen = graph.put("Sub", graph.constant("one", 1.0), seen)
    return graph.put("Mul", unseen, graph.constant("lowest", np.finfo(np.float32).min))


def _layer(graph: _Graph, bert: Bert, name: str, tokens: str, hidden: str) -> str:
    looked = graph.linear(f"{name}.attention.output.dense", _attention(graph, bert, name, tokens, hidden))
    tokens = graph.norm(f"{name}.attention.output.LayerNorm", graph.put("Add", looked, tokens), bert.epsilon)
    inner = graph.put("Gelu", graph.linear(f"{name}.intermediate.dense", tokens))
    thought = graph.linear(f"{name}.output.dense", inner)
    return graph.norm(f"{name}.output.LayerNorm", graph.put("Add", thought, tokens), bert.epsilon)


def _attention(graph: _Graph, bert: Bert, name: str, tokens: str, hidden: str) -> str:
    size = bert.width // bert.heads
    split, joined = graph.whole("split", 0, 0, bert.heads, size), graph.whole("joined", 0, 0, bert.width)

    def heads(of: str, order: list[int]) -> str:
        parted = graph.put("Reshape", graph.linear(f"{name}.attention.self.{of}", tokens), split)
        return graph.put("Transpose", parted, perm=order)

    alike = graph.put("MatMul", heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]))
    scaled = graph.put("Mul", alike, graph.constant("scale", size**-0.5))
    shares = graph.put("Softmax", graph.put("Add", scaled, hidden), axis=-1)
    seen = graph.put("MatMul", shares, heads("value", [0, 2, 1, 3]))
    return graph.put("Reshape", graph.put("Transpose", seen, perm=[0, 2, 1, 3]), joined)


def _pooled(graph: _Graph, bert: Bert, tokens: str) -> str:
    """One vector for each text."""
    from onnx import TensorProto

    along = graph.whole("along", 1)
    if bert.pooling == "cls":
        vector = graph.put("Gather", tokens, graph.constant("first", 0, np.int64), axis=1)
    else:
        mask = graph.put("Cast", INPUTS[1], to=TensorProto.FLOAT)
        mask = graph.put("Unsqueeze", mask, graph.whole("last", -1))
        total = graph.put("ReduceSum", graph.put("Mul", tokens, mask), along, keepdims=0)
        count = graph.put("ReduceSum", mask, along, keepdims=0)
        vector = graph.put("Div", total, graph.put("Max", count, graph.constant("a token", COUNT_MIN)))
    if bert.normalized:
        vector = _normalized(graph, vector)
    if graph.has(CENTRE):
        vector = _normalized(graph, graph.put("Sub", vector, graph.weight(CENTRE)))
    return vector


def _normalized(graph: _Graph, vector: str) -> str:
    length = graph.put("ReduceL2", vector, graph.whole("along", 1), keepdims=1)
    return graph.put("Div", vector, graph.put("Max", length, graph.constant("a length", LENGTH_MIN)))
