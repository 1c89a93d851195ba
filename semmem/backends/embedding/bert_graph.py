"""BERT in ONNX's words: one node for each step of its paper, written from the weights as they lie.

Standard operators only. ONNX Runtime fuses what it can by itself, and its own fused ones (Attention,
SkipLayerNormalization) are no faster on a CPU; docs/decisions/0040 has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from semmem.backends.embedding.bert import Bert

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


def bert_graph(bert: Bert, weights: Mapping[str, Array]) -> Any:
    """The onnx.ModelProto: ``input_ids`` and ``attention_mask`` of texts to ``embedding``.

    Raises KeyError: a weight is missing; ValueError: one is not used, so this is not the model that was described.
    """
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
