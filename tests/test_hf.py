"""Hugging Face folders, both ways, with transformers as the judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import CORPORA

from paperkiln.engine import ops
from paperkiln.errors import PaperkilnError
from paperkiln.formats.hf import export_hf, load_hf, model_tensors, params_from_tensors
from paperkiln.formats.hf_config import hf_shape, why_not_hf
from paperkiln.formats.safetensors_io import load_tensors, save_tensors
from paperkiln.models.config import ModelConfig, parameter_shapes
from paperkiln.models.decoder import Decoder
from paperkiln.train.tokenizers import Tokenizer, byte_tokenizer, train_bpe, train_word

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
torch.set_num_threads(1)  # these models are tiny, and other tests want the other core
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TEXT = "The cat said: \"I'm here, aren't I?\" A café owner 🦙 ran 22 miles, didn't he?\n" * 3
TOLERANCE = 1e-4

LLAMA: dict[str, Any] = {
    "d_model": 64, "n_layers": 2, "n_heads": 8, "n_kv_heads": 2, "d_ff": 172, "init_std": 0.2,
    "context_length": 64,
}  # fmt: skip
GPT2: dict[str, Any] = {
    "preset": "gpt2-nano", "d_model": 64, "d_ff": 96, "init_std": 0.2, "context_length": 64,
}  # fmt: skip
HF_SHAPED: dict[str, dict[str, Any]] = {
    "llama": LLAMA | {"tied_embeddings": False},
    "llama, tied": LLAMA | {"rope_theta": 500.0, "norm_eps": 1e-6},
    "llama, biases": LLAMA | {"bias": True},
    "llama, interleaved": LLAMA | {"rope_layout": "interleaved", "bias": True},
    "llama, wide heads": LLAMA | {"head_dim": 32},
    "llama, geglu": LLAMA | {"activation": "geglu"},
    "llama, reglu": LLAMA | {"activation": "reglu"},
    "gpt2": GPT2 | {"tied_embeddings": False},
    "gpt2, tied": GPT2,
    "gpt2, erf": GPT2 | {"activation": "gelu"},
    "gpt2, relu": GPT2 | {"activation": "relu"},
    "gpt2, silu": GPT2 | {"activation": "silu"},
    "gpt2, squared relu": GPT2 | {"activation": "squared_relu"},
}
OURS_ONLY: dict[str, tuple[dict[str, Any], str]] = {
    "swa": (LLAMA | {"attention": "swa"}, "attention exact"),
    "ungated": (LLAMA | {"activation": "relu"}, "no relu feed-forward"),
    "post-norm": (GPT2 | {"norm_placement": "post"}, "norm_placement pre"),
    "grouped gpt2": (GPT2 | {"n_kv_heads": 2}, "n_kv_heads 4"),
    "no bias": (GPT2 | {"bias": False}, "bias True"),
    "interleaved swa": (LLAMA | {"attention": "swa", "rope_layout": "interleaved"}, "attention"),
    "uneven": (LLAMA | {"d_model": 60, "head_dim": 8}, "multiple of n_heads"),
    "scaled": (LLAMA | {"scale_embeddings": True}, "scale_embeddings False"),
}


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return train_bpe(TEXT, 300)


def build(fields: dict[str, Any], n_vocab: int) -> tuple[ModelConfig, dict[str, np.ndarray]]:
    """A random model whose gains and biases are random too, so that a swap of two shows."""
    config = ModelConfig(**{"vocab_size": n_vocab} | fields)
    rng = np.random.default_rng(0)
    params = {}
    for name, shape in parameter_shapes(config).items():
        gain = len(shape) == 1 and name.endswith("weight")
        params[name] = (gain + rng.normal(0, config.init_std, shape)).astype(np.float32)
    return config, params


def our_logits(config: ModelConfig, params: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    with ops.no_grad():
        return Decoder(config, params, ops).logits(np.array([ids])).data[0]


def their_logits(model: Any, ids: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def corpus_lines() -> list[str]:
    files = sorted(CORPORA.glob("*.txt"))
    if not files:
        pytest.skip(f"no corpora in {CORPORA}; set PAPERKILN_CORPORA")
    lines = [file.read_text(encoding="utf-8").splitlines(keepends=True) for file in files]
    return [line for some in lines for line in some[: -(-1000 // len(files))]]


# --- ours, opened by transformers ------------------------------------------------------------


@pytest.mark.parametrize("name", HF_SHAPED)
def test_transformers_computes_what_we_compute(name: str, bpe: Tokenizer, tmp_path: Path) -> None:
    config, params = build(HF_SHAPED[name], bpe.vocab_size)
    assert hf_shape(config) == name.split(",")[0]
    export_hf(tmp_path / "out", config, params, bpe)
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids = bpe.encode(TEXT)[:60]
    difference = np.abs(their_logits(model.eval(), ids) - our_logits(config, params, ids)).max()
    print(f"export, {name}: logits differ from transformers by at most {difference:.1e}")
    assert difference <= TOLERANCE

    greedy = ids[:8]
    for _ in range(32):
        greedy.append(int(our_logits(config, params, greedy)[-1].argmax()))
    assert len(set(greedy[8:])) >= 4, "a greedy text of one token proves nothing"
    theirs = model.generate(
        torch.tensor([ids[:8]]), attention_mask=torch.ones(1, 8), max_new_tokens=32,
        do_sample=False, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    assert theirs[0].tolist() == greedy


@pytest.mark.parametrize("kind", ["bpe", "byte", "word"])
def test_their_tokenizer_gives_our_ids(kind: str, tmp_path: Path) -> None:
    lines = corpus_lines()
    text = "".join(lines)
    made = {"bpe": lambda: train_bpe(text, 600), "byte": byte_tokenizer,
            "word": lambda: train_word(text, 900)}[kind]()  # fmt: skip
    export_hf(tmp_path / "out", *build(LLAMA, made.vocab_size), made)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    lines += ["a  b\r\n\tc ñ 日本語 🦙 don't x", "<|user|>hi<|assistant|>yes<|endoftext|>"]
    assert len(lines) >= 1000
    for line in lines:
        assert theirs(line)["input_ids"] == made.encode(line, specials=True)
    assert theirs.eos_token_id == made.eos_id
    assert theirs.model_max_length == 64
    assert load_hf(tmp_path / "out").tokenizer.tokens == made.tokens


def test_an_export_replaces_an_export_and_nothing_else(bpe: Tokenizer, tmp_path: Path) -> None:
    model = build(LLAMA, bpe.vocab_size)
    out = tmp_path / "out"
    export_hf(out, *model, bpe)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    export_hf(out, *model, bpe)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    (out / "thesis.tex").touch()
    with pytest.raises(PaperkilnError, match=r"holds thesis\.tex"):
        export_hf(out, *model, bpe)
    (tmp_path / "file").touch()
    with pytest.raises(PaperkilnError, match="holds file"):
        export_hf(tmp_path / "file", *model, bpe)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out"]


@pytest.mark.parametrize("name", OURS_ONLY)
def test_what_transformers_lacks_is_refused_in_words(
    name: str, bpe: Tokenizer, tmp_path: Path
) -> None:
    fields, said = OURS_ONLY[name]
    config, params = build(fields, bpe.vocab_size)
    assert hf_shape(config) is None
    assert said in (why_not_hf(config) or "")
    with pytest.raises(PaperkilnError, match=r"export safetensors or gguf"):
        export_hf(tmp_path / "out", config, params, bpe)


# --- a run folder's safetensors --------------------------------------------------------------


@pytest.mark.parametrize("name", [*HF_SHAPED, *OURS_ONLY])
def test_run_folder_tensors_come_back_exactly(name: str, tmp_path: Path) -> None:
    config, params = build((HF_SHAPED | {k: v[0] for k, v in OURS_ONLY.items()})[name], 300)
    save_tensors(tmp_path / "m.safetensors", model_tensors(config, params))
    tensors = load_tensors(tmp_path / "m.safetensors").tensors
    assert ("embed.weight" in tensors) == (hf_shape(config) is None)
    for rename in (  # torch.compile, DistributedDataParallel, both, and the bare inner model
        str, "_orig_mod.{}".format, "module._orig_mod.{}".format,
        lambda n: n.removeprefix("model.").removeprefix("transformer."),
    ):  # fmt: skip
        found = params_from_tensors(config, {rename(n): a for n, a in tensors.items()})
        assert list(found) == list(params)
        for key, array in params.items():
            np.testing.assert_array_equal(found[key], array)


def test_names_and_shapes_are_strict() -> None:
    config, params = build(LLAMA, 300)
    good = model_tensors(config, params)
    norm = "model.norm.weight"

    def refused(said: str, change: dict[str, Any], without: str = "") -> None:
        tensors = {n: a for n, a in (good | change).items() if n != without}
        with pytest.raises(PaperkilnError, match=said):
            params_from_tensors(config, tensors, "run/model.safetensors")

    refused(r"run/model.safetensors: 1 tensors are missing: model.norm.weight", {}, norm)
    refused("nearest in the file: 'model.nrom.weight'", {"model.nrom.weight": params[
        "norm.weight"]}, norm)  # fmt: skip
    refused("1 are unexpected: model.layers.9.mlp", {"model.layers.9.mlp.x.weight": good[norm]})
    refused(r"has shape \(3,\), and the configuration says \(64,\)", {norm: np.ones(3, "f4")})
    refused("is int8, not floating", {norm: np.ones(64, "i1")})
    refused("are both 'model.norm.weight'", {"_orig_mod.model.norm.weight": good[norm]})
    refused("says they are tied", {"lm_head.weight": good["model.embed_tokens.weight"] + 1})
    same_head = good | {"lm_head.weight": good["model.embed_tokens.weight"]}
    assert params_from_tensors(config, same_head).keys() == params.keys()


# --- theirs, opened by us --------------------------------------------------------------------


def their_llama(**other: Any) -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{
        "vocab_size": 300, "hidden_size": 64, "intermediate_size": 172, "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 64,
        "initializer_range": 0.2,
    } | other))  # fmt: skip


def their_gpt2(**other: Any) -> Any:
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**{
        "vocab_size": 300, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64,
        "initializer_range": 0.2, "bos_token_id": 0, "eos_token_id": 0,
    } | other))  # fmt: skip


THEIRS: dict[str, tuple[Any, dict[str, Any]]] = {
    "llama": (their_llama, {}),
    "llama, tied": (their_llama, {"tie_word_embeddings": True, "rms_norm_eps": 1e-5}),
    "llama, biases, gelu": (
        their_llama, {"attention_bias": True, "mlp_bias": True, "hidden_act": "gelu"}),
    "llama, theta, wide": (
        their_llama,
        {"head_dim": 32, "rope_parameters": {"rope_type": "default", "rope_theta": 300.0}}),
    "gpt2": (their_gpt2, {}),
    "gpt2, untied, inner": (their_gpt2, {"tie_word_embeddings": False, "n_inner": 100}),
    "gpt2, relu": (their_gpt2, {"activation_function": "relu", "layer_norm_epsilon": 1e-3}),
}  # fmt: skip


@pytest.mark.parametrize("shard", [None, "60KB"])
@pytest.mark.parametrize("name", THEIRS)
def test_we_compute_what_transformers_computes(
    name: str, shard: str | None, tmp_path: Path
) -> None:
    make, fields = THEIRS[name]
    model = make(**fields).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # their gains start at 1 and biases at 0
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
    model.save_pretrained(tmp_path, **({"max_shard_size": shard} if shard else {}))
    assert (tmp_path / "model.safetensors").exists() == (shard is None)
    loaded = load_hf(tmp_path)
    ids = np.random.default_rng(0).integers(0, 300, 60).tolist()
    ours = our_logits(loaded.config, loaded.params, ids)
    difference = np.abs(ours - their_logits(model, ids)).max()
    print(f"import, {name}: logits differ from transformers by at most {difference:.1e}")
    assert difference <= TOLERANCE
    assert loaded.tokenizer is None
    assert any("without its tokenizer" in note for note in loaded.notes)


def test_bfloat16_and_float16_load_with_a_note(tmp_path: Path) -> None:
    for dtype in ("bfloat16", "float16"):
        model = their_llama().to(getattr(torch, dtype))
        model.save_pretrained(tmp_path / dtype)
        loaded = load_hf(tmp_path / dtype)
        assert f"21 {dtype} tensors were widened to float32" in loaded.notes
        expected = model.lm_head.weight.to(torch.float32).detach().numpy()
        np.testing.assert_array_equal(loaded.params["head.weight"], expected)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "mamba"}, "model_type 'mamba' is not supported"),
        ({"model_type": None}, "model_type None"),
        ({"rope_parameters": None, "rope_scaling": {"type": "yarn", "factor": 2}}, "yarn"),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4}}, "dynamic"),
        ({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, "0.5"),
        ({"attention_bias": True}, "attention_bias is True, with mlp_bias False"),
        ({"hidden_act": "mish"}, "mish"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"hidden_size": None}, "no model can have this .hidden_size is None"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0, not a number from 1"),
        ({"hidden_size": 10**4299}, "hidden_size is 1000"),
        ({"num_hidden_layers": -3}, "num_hidden_layers is -3"),
        ({"vocab_size": "many"}, "vocab_size is 'many'"),
        ({"rms_norm_eps": -1}, "norm_eps = -1: Input should be greater"),
        ({"hidden_act": ["silu"]}, "the activation is .'silu'."),
        ({"model_type": ["llama"]}, "model_type .'llama'. is not supported"),
        ({"rope_parameters": None, "rope_scaling": "linear"}, "rope_scaling is 'linear', not an"),
        ({"rope_parameters": [1]}, "rope_parameters is .1., not an object"),
        ({"num_hidden_layers": 3}, "9 tensors are missing"),
        ({"num_hidden_layers": 1}, "9 are unexpected"),
        ({"vocab_size": 301}, "shape"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings"),
    ],
)
def test_features_we_lack_are_refused_by_name(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    their_llama().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(PaperkilnError, match=said) as caught:
        load_hf(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    "change", [{"scale_attn_weights": False}, {"scale_attn_by_inverse_layer_idx": True}]
)
def test_gpt2_variants_are_refused_by_name(change: dict[str, Any], tmp_path: Path) -> None:
    their_gpt2(**change).save_pretrained(tmp_path)
    with pytest.raises(PaperkilnError, match=next(iter(change))):
        load_hf(tmp_path)


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    model = their_llama()

    def refused(said: str) -> None:
        with pytest.raises(PaperkilnError, match=said):
            load_hf(tmp_path)

    refused("cannot be read")
    (tmp_path / "config.json").write_text("{")
    refused("is not JSON")
    (tmp_path / "config.json").write_text("[]")
    refused("no JSON object")
    model.config.save_pretrained(tmp_path)
    refused("holds no model.safetensors")
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    refused("a pickle, which can run code")

    model.save_pretrained(tmp_path, max_shard_size="60KB")
    index = tmp_path / "model.safetensors.index.json"
    good = json.loads(index.read_text())
    shard = tmp_path / good["weight_map"]["lm_head.weight"]
    for change, said in (
        ({"weight_map": 3}, "no weight_map"),
        ({"weight_map": {"lm_head.weight": "../secret.safetensors"}}, "outside the folder"),
        ({"weight_map": {"lm_head.weight": "/etc/passwd"}}, "outside the folder"),
        ({"weight_map": {"lm_head.weight": ".."}}, "outside the folder"),
        ({"weight_map": {"lm_head.weight": "none.safetensors"}}, "cannot be read"),
        ({"weight_map": {"absent.weight": shard.name}}, "the shards lack 'absent.weight'"),
        ({"weight_map": {"lm_head.weight": shard.name}}, "tensors are missing"),
    ):
        index.write_text(json.dumps(good | change))
        refused(said)
    index.write_text(json.dumps(good))
    shard.write_bytes(shard.read_bytes()[:-1])
    refused(shard.name)


def test_a_tokenizer_of_another_model_is_refused(bpe: Tokenizer, tmp_path: Path) -> None:
    their_llama(vocab_size=280).save_pretrained(tmp_path)
    bpe.save(tmp_path / "tokenizer.json")
    with pytest.raises(PaperkilnError, match="tokens and the model 280 rows"):
        load_hf(tmp_path)


@pytest.mark.parametrize(
    ("ours", "generation", "ends"),
    [
        ({"eos_token_id": 2}, None, (2,)),
        ({"eos_token_id": [299, 5]}, None, (299, 5)),
        ({"eos_token_id": 2}, {"eos_token_id": [1, 299, 1, 300]}, (1, 299)),
        ({"eos_token_id": 2}, {"do_sample": True}, (2,)),
        ({"eos_token_id": None}, None, (0,)),  # by its usual name
        ({"eos_token_id": 50256}, None, (0,)),  # transformers' default, for a small vocabulary
    ],
)
def test_a_text_ends_where_the_files_say(
    ours: dict[str, Any], generation: Any, ends: tuple[int, ...], bpe: Tokenizer, tmp_path: Path
) -> None:
    config, params = build(HF_SHAPED["llama"], bpe.vocab_size)
    export_hf(tmp_path / "m", config, params, bpe)
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | ours))
    path = tmp_path / "m" / "generation_config.json"
    path.unlink()
    if generation is not None:
        path.write_text(json.dumps(generation))
    loaded = load_hf(tmp_path / "m")
    assert loaded.tokenizer.end_ids == ends
    assert loaded.tokenizer.eos_id == ends[0]
    export_hf(tmp_path / "again", config, params, loaded.tokenizer)
    assert load_hf(tmp_path / "again").tokenizer.end_ids == ends
