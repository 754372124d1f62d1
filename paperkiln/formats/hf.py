"""Hugging Face folders: llama- and gpt2-shaped models that `transformers` opens, and the way back.

Both ways are strict: a feature, a tensor or a shape that our decoder does not have is refused by
name, because a model that loads with one of them ignored still talks, only wrongly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_folder
from paperkiln.formats.hf_config import (
    Shape,
    config_from_hf,
    eos_ids,
    hf_config,
    hf_shape,
    rope_factors_from_hf,
    why_not_hf,
)  # fmt: skip
from paperkiln.formats.layout import (
    CANONICAL,
    HF_GPT2,
    HF_LLAMA,
    Layout,
    from_layout,
    parts,
    to_layout,
)  # fmt: skip
from paperkiln.formats.safetensors_io import load_tensors, save_tensors
from paperkiln.infer.chat_template import CHAT_TEMPLATE_JINJA
from paperkiln.models.config import ROPE_FACTORS, ModelConfig
from paperkiln.train.tokenizers import ASSISTANT, UNKNOWN, USER, Tokenizer

LAYOUTS: dict[Shape | None, Layout] = {"llama": HF_LLAMA, "gpt2": HF_GPT2, None: CANONICAL}

INDEX, WEIGHTS = "model.safetensors.index.json", "model.safetensors"
# What wrappers put before every name: torch.compile and DistributedDataParallel.
_WRAPPERS = ("_orig_mod.", "module.")
_MODELS = ("model.", "transformer.")
# Tables that old files store among the weights and that follow from the configuration.
_BUFFERS = (".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq")
_EXPORTED = (
    "config.json", "generation_config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json",
)  # fmt: skip


class HfModel(NamedTuple):
    """A loaded folder; `notes` says in words what was converted or left out."""

    config: ModelConfig
    params: dict[str, np.ndarray]
    tokenizer: Tokenizer | None
    notes: list[str]


def model_tensors(config: ModelConfig, params: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what a run folder's model.safetensors holds: Hugging Face names where they exist."""
    return to_layout(config, params, LAYOUTS[hf_shape(config)])


def params_from_tensors(
    config: ModelConfig, tensors: Mapping[str, np.ndarray], where: str = WEIGHTS
) -> dict[str, np.ndarray]:
    """Return canonical parameters from the tensors of a file, the inverse of model_tensors.

    Raises PaperkilnError listing the names that are missing or unexpected.
    """
    layout = LAYOUTS[hf_shape(config)]
    wanted = {part.name for part in parts(config, layout)}
    return from_layout(config, plain_names(tensors, wanted, where), layout, where)


def plain_names(
    tensors: Mapping[str, np.ndarray], wanted: set[str], where: str
) -> dict[str, np.ndarray]:
    """Undo what wrappers did to names, and drop what follows from other tensors.

    Raises PaperkilnError if two names become one, or a head beside tied embeddings differs.
    """
    found: dict[str, np.ndarray] = {}
    for original, array in tensors.items():
        name = original
        while name.startswith(_WRAPPERS):
            name = name.split(".", 1)[1]
        if name not in wanted:  # saved from the bare model, or wrapped once more
            bare = name.split(".", 1)[1] if name.startswith(_MODELS) else name
            variants = (bare, *(prefix + name for prefix in _MODELS))
            name = next((variant for variant in variants if variant in wanted), name)
        if name not in wanted and name.endswith(_BUFFERS):
            continue
        if name in found:
            raise PaperkilnError(f"{where}: {original!r} and another tensor are both {name!r}")
        found[name] = array
    if "lm_head.weight" in found and "lm_head.weight" not in wanted:
        embedding = next((found[n] for n in wanted & set(found) if n in _EMBEDDINGS), None)
        if embedding is None or not np.array_equal(found.pop("lm_head.weight"), embedding):
            raise PaperkilnError(
                f"{where}: lm_head.weight differs from the embeddings, and the configuration says "
                "they are tied; set tie_word_embeddings (tied_embeddings) to false"
            )
    return found


_EMBEDDINGS = {f"{layout.names['embed']}.weight" for layout in LAYOUTS.values()}


def to_hf(config: ModelConfig, params: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the tensors as transformers names and arranges them.

    Raises PaperkilnError if transformers has no such model.
    """
    if reason := why_not_hf(config):
        raise PaperkilnError(f"{reason}; export safetensors or gguf instead")
    return model_tensors(config, params)


def from_hf(
    hf_config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], where: str = "the folder"
) -> tuple[ModelConfig, dict[str, np.ndarray]]:
    """Return our configuration and canonical parameters for a transformers config and tensors.

    Raises PaperkilnError for a feature, a tensor or a shape that our decoder does not have.
    """
    config = config_from_hf(hf_config, where)
    factors = rope_factors_from_hf(hf_config, config, where)
    params = params_from_tensors(config, tensors, where)
    if factors:
        params[ROPE_FACTORS] = np.array(factors, np.float32)
    return config, params


def export_hf(
    folder: str | os.PathLike[str],
    config: ModelConfig,
    params: Mapping[str, np.ndarray],
    tokenizer: Tokenizer,
) -> None:
    """Write a folder that AutoModelForCausalLM and AutoTokenizer open, whole or not at all.

    Raises PaperkilnError if transformers has no such model or the folder cannot be written.
    """
    tensors = to_hf(config, params)
    files = hf_files(tokenizer)
    files["tokenizer_config.json"]["model_max_length"] = config.context_length
    files["config.json"] = hf_config(config, tokenizer.eos_id)
    ends = tokenizer.end_ids
    files["generation_config.json"] = {
        "bos_token_id": ends[0],
        "eos_token_id": ends[0] if len(ends) == 1 else list(ends),
        "pad_token_id": ends[0],
    }
    with new_folder(folder, holds=_EXPORTED) as aside:
        save_tensors(aside / WEIGHTS, tensors)
        for name, content in files.items():
            text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
            (aside / name).write_text(text, encoding="utf-8")


def hf_files(tokenizer: Tokenizer) -> dict[str, dict[str, Any]]:
    """Return the contents, by file name, of what AutoTokenizer opens, chat template included."""
    end = tokenizer.tokens[tokenizer.eos_id]
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokenizer.tokens[tokenizer.bos_id],
        "eos_token": end,
        "pad_token": end,
        "clean_up_tokenization_spaces": False,
    }
    if tokenizer.kind == "word":
        config["unk_token"] = UNKNOWN
    if tokenizer.chat_template:
        config["chat_template"] = tokenizer.chat_template
    elif USER in tokenizer.specials and ASSISTANT in tokenizer.specials:
        config["chat_template"] = CHAT_TEMPLATE_JINJA
    return {"tokenizer.json": tokenizer.to_json(), "tokenizer_config.json": config}


def load_hf(folder: str | os.PathLike[str]) -> HfModel:
    """Load a transformers folder, one safetensors file or sharded; parameters become float32.

    The tokenizer is None where the folder holds none of a kind that we have; a note says why.
    Raises PaperkilnError for a feature, a tensor or a file that cannot be used.
    """
    folder = Path(folder)
    hf = read_json(folder / "config.json")
    tensors, notes = _load_weights(folder)
    config, params = from_hf(hf, tensors, str(folder))
    narrow = sum(array.dtype == np.float16 for array in tensors.values())
    if narrow:
        notes.append(f"{narrow} float16 tensors were widened to float32")
    tokenizer, ends = None, _end_ids(folder, hf)
    try:
        tokenizer = Tokenizer.load(folder / "tokenizer.json", ends)
        tokenizer.chat_template = _chat_template(folder)
    except PaperkilnError as error:
        notes.append(f"loaded without its tokenizer: {error}")
    if tokenizer and tokenizer.vocab_size > config.vocab_size:
        raise PaperkilnError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} tokens and the model "
            f"{config.vocab_size} rows; they are from different models"
        )
    return HfModel(config, params, tokenizer, notes)


def _chat_template(folder: Path) -> str:
    alone, config = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    if alone.exists():
        return alone.read_text(encoding="utf-8", errors="replace")
    template = read_json(config).get("chat_template") if config.exists() else None
    return template if isinstance(template, str) else ""


def _end_ids(folder: Path, hf: Mapping[str, Any]) -> tuple[int, ...]:
    path = folder / "generation_config.json"  # where it is, transformers goes by it
    return eos_ids(read_json(path), hf) if path.exists() else eos_ids(hf)


def _load_weights(folder: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    if (folder / WEIGHTS).exists():
        file = load_tensors(folder / WEIGHTS)
        return file.tensors, file.notes
    if not (folder / INDEX).exists():
        if list(folder.glob("pytorch_model*.bin")):
            raise PaperkilnError(
                f"{folder} holds only pytorch_model.bin, a pickle, which can run code when opened; "
                "save it with transformers: model.save_pretrained(folder) writes safetensors"
            )
        raise PaperkilnError(f"{folder} holds no {WEIGHTS}; give a Hugging Face model folder")
    where = weight_map(folder)
    tensors: dict[str, np.ndarray] = {}
    notes: list[str] = []
    for name in sorted(set(where.values())):
        shard = load_tensors(folder / name)
        if twice := shard.tensors.keys() & tensors.keys():
            raise PaperkilnError(f"{folder / name} repeats {min(twice)!r}; download it again")
        tensors |= shard.tensors
        notes += [f"{name}: {note}" for note in shard.notes]
    if lost := sorted(where.keys() - tensors.keys()):
        raise PaperkilnError(
            f"{folder}: the shards lack {lost[0]!r}, which the index lists; download them again"
        )
    return tensors, notes


def weight_map(folder: Path) -> dict[str, str]:
    """Return the shard's file name for each tensor of a sharded folder.

    Raises PaperkilnError for an index that is damaged or points out of the folder.
    """
    where = read_json(folder / INDEX).get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(file, str) for file in where.values()):
        raise PaperkilnError(f"{folder / INDEX} has no weight_map; download it again")
    for name in where.values():
        if name in (".", "..") or {"/", "\\", "\0", ":"} & set(name):
            raise PaperkilnError(
                f"{folder / INDEX} points to {name!r}, outside the folder; do not trust it"
            )
    return where


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a model's folder. Raises PaperkilnError."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PaperkilnError(
            f"{path} cannot be read ({error.strerror or error}); give a Hugging Face model folder"
        ) from error
    except (ValueError, RecursionError) as error:
        raise PaperkilnError(f"{path} is not JSON ({error}); download it again") from error
    if not isinstance(content, dict):
        raise PaperkilnError(f"{path} holds no JSON object; download it again")
    return content
