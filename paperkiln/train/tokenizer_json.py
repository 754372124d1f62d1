"""The layout of a Hugging Face tokenizer.json: written for ours, read defensively for anyone's.

Standard library only: the browser runs this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from paperkiln.errors import PaperkilnError
from paperkiln.train.pretokenize import (
    CUTS,
    LLAMA3_PATTERN,
    QWEN2_PATTERN,
    WORD_PATTERN,
)  # fmt: skip

Kind = Literal["bpe", "word", "byte"]
Merge = tuple[str, str]
Ids = dict[str, int]  # of tokens by name

UNKNOWN = "<unk>"

# What the file says of a byte-level BPE: another value of one of these is another algorithm.
_PLAIN_BPE = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}
_BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}


def _split(pattern: str) -> dict[str, Any]:
    return {
        "type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False,
    }  # fmt: skip


_WORD_SPLIT = [_split(WORD_PATTERN)]
# The parts of each byte-level BPE's pre-tokenizer, as SmolLM's, Llama 3's and Qwen2's files have
# them; the names are those of pretokenize.CUTS.
_BYTES_ONLY = _BYTE_LEVEL | {"use_regex": False}
_PRE_TOKENIZERS: dict[str, list[dict[str, Any]]] = {
    "gpt-2": [_BYTE_LEVEL],
    "smollm": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL],
    "llama-bpe": [_split(LLAMA3_PATTERN), _BYTES_ONLY],
    "smaug-bpe": [_split(LLAMA3_PATTERN), _BYTES_ONLY],
    "qwen2": [_split(QWEN2_PATTERN), _BYTES_ONLY],
}
_ADDED_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def write_layout(
    kind: Kind,
    tokens: Sequence[str],
    merges: Iterable[Merge],
    specials: dict[str, int],
    cut: str = "gpt-2",
    user_defined: Mapping[str, int] | None = None,
    begin_ids: Sequence[int] = (),
) -> dict[str, Any]:
    """The contents of tokenizer.json for a vocabulary in id order and merges by rank.

    Raises PaperkilnError for a way to cut text that such a file has no words for.
    """
    vocab = {token: i for i, token in enumerate(tokens)}
    if kind == "word":
        parts, decoder = _WORD_SPLIT, {"type": "Fuse"}
        model = {"type": "WordLevel", "vocab": vocab, "unk_token": UNKNOWN}
    else:
        parts, decoder = _parts_of(cut), _BYTE_LEVEL
        # "a b" and not ["a", "b"]: readers of any age take it, and byte-level tokens hold no space.
        model = _PLAIN_BPE | {"vocab": vocab, "merges": [" ".join(pair) for pair in merges]}
        model["ignore_merges"] = CUTS[cut].ignores_merges
    added = specials | dict(user_defined or {})
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": name, **_ADDED_FLAGS, "special": name in specials}
            for name, i in sorted(added.items(), key=lambda token: token[1])
        ],
        "normalizer": None,
        "pre_tokenizer": (
            dict(parts[0]) if len(parts) == 1 else {"type": "Sequence", "pretokenizers": parts}
        ),
        "post_processor": _begin_with([tokens[i] for i in begin_ids], vocab),
        "decoder": dict(decoder),
        "model": model,
    }


def _begin_with(names: Sequence[str], vocab: Mapping[str, int]) -> dict[str, Any] | None:
    """The post-processor that puts tokens before every text."""
    if not names:
        return None
    first, second = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    begins = [{"SpecialToken": {"id": name, "type_id": 0}} for name in names]
    return {
        "type": "TemplateProcessing", "single": [*begins, first], "pair": [*begins, first, second],
        "special_tokens": {n: {"id": n, "ids": [vocab[n]], "tokens": [n]} for n in names},
    }  # fmt: skip


def read_begins(data: Any) -> list[str]:
    """The names of the tokens that a tokenizer.json puts before every text."""
    names = []
    match data.get("post_processor"):
        case {"type": "Sequence", "processors": [*processors]}:
            pass
        case alone:
            processors = [alone]
    for processor in processors:
        match processor:
            case {"type": "TemplateProcessing", "single": [*parts]}:
                for part in parts:
                    match part:
                        case {"SpecialToken": {"id": str(name)}}:
                            names.append(name)
                        case _:
                            break
    return names


def _parts_of(cut: str) -> list[dict[str, Any]]:
    same = [name for name in _PRE_TOKENIZERS if CUTS[name] == CUTS[cut]]
    if not same:
        raise PaperkilnError(
            f"a tokenizer that cuts text as {cut!r} has no tokenizer.json; export the model as gguf"
        )
    return _PRE_TOKENIZERS[same[0]]


def read_layout(data: Any) -> tuple[Kind, list[str], list[Merge], Ids, str, Ids]:
    """Kind, tokens in id order, merges by rank, specials, the cut and the user-defined tokens.

    Read are ours and byte-level BPE cut as one of `pretokenize.CUTS`; an added token that is not
    special is user-defined. Raises PaperkilnError naming what is missing or not supported.
    """
    model = _entry(data, "model", dict)
    # GPT-2's own file is older than the "type" of a model.
    kind = "BPE" if "merges" in model and "type" not in model else _entry(model, "type", str)
    if kind not in ("BPE", "WordLevel"):
        raise PaperkilnError(
            f"a {kind} model is not supported, only byte-level BPE and paperkiln's WordLevel"
        )
    if kind == "BPE":
        _refuse_other_bpe(model)
    if data.get("normalizer"):
        raise PaperkilnError("its normalizer changes the text before encoding: not supported")
    cut = _read_cut(kind, data.get("pre_tokenizer"), bool(model.get("ignore_merges")))
    added = _entry(data, "added_tokens", list)
    tokens, specials, user_defined = _read_vocabulary(model, added)
    is_word = kind == "WordLevel"
    merges = [] if is_word else _read_merges(_entry(model, "merges", list))
    return "word" if is_word else "bpe", tokens, merges, specials, cut, user_defined


def _entry(data: Any, key: str, kind: type) -> Any:
    if not isinstance(data, dict) or key not in data:
        raise PaperkilnError(f"not a tokenizer.json: {key!r} is missing")
    if not isinstance(data[key], kind):
        names = {dict: "an object", list: "an array", str: "a string", int: "a number"}
        raise PaperkilnError(f"not a tokenizer.json: {key!r} is not {names[kind]}")
    return data[key]


def _refuse_other_bpe(model: dict[str, Any]) -> None:
    for key in (
        "byte_fallback",
        "dropout",
        "continuing_subword_prefix",
        "end_of_word_suffix",
    ):
        if model.get(key):
            raise PaperkilnError(f"BPE with {key} is not supported, only GPT-2's byte-level BPE")


def _read_cut(kind: str, pre_tokenizer: Any, ignores_merges: bool) -> str:
    """Return the name of the cut that a pre-tokenizer makes, "gpt-2" for that of `word`."""
    found = _essence(pre_tokenizer)
    if kind == "WordLevel":
        known = {"gpt-2": _WORD_SPLIT}
    else:
        known = {
            n: p for n, p in _PRE_TOKENIZERS.items() if CUTS[n].ignores_merges == ignores_merges
        }
    for name, parts in known.items():
        if found == [part for whole in parts for part in _essence(whole)]:
            return name
    wanted = (
        f"Split by {WORD_PATTERN}"
        if kind == "WordLevel"
        else "those of GPT-2 (ByteLevel without a prefix space), SmolLM, Llama 3 and Qwen2"
    )
    which = " together with ignore_merges" if ignores_merges else ""
    raise PaperkilnError(f"its pre-tokenizer is not supported{which}, only {wanted}")


def _essence(pre_tokenizer: Any) -> list[Any]:
    """Return a pre-tokenizer's parts without what is implied or concerns no id."""
    if not isinstance(pre_tokenizer, dict):
        return [pre_tokenizer]
    if pre_tokenizer.get("type") == "Sequence":
        parts = pre_tokenizer.get("pretokenizers")
        return [p for part in parts for p in _essence(part)] if isinstance(parts, list) else []
    implied = {"use_regex": True} if pre_tokenizer.get("type") == "ByteLevel" else {}
    return [{k: v for k, v in (implied | pre_tokenizer).items() if k != "trim_offsets"}]


def _read_vocabulary(model: dict[str, Any], added: list[Any]) -> tuple[list[str], Ids, Ids]:
    specials: Ids = {}
    user_defined: Ids = {}
    for token in added:
        name, i = _entry(token, "content", str), _entry(token, "id", int)
        (specials if token.get("special", True) else user_defined)[name] = i
        if any(token.get(flag) for flag in ("single_word", "lstrip", "rstrip")):
            raise PaperkilnError(
                f"added token {name!r} depends on the text beside it: not supported"
            )
    ids = _entry(model, "vocab", dict) | specials | user_defined
    if not all(isinstance(i, int) for i in ids.values()):
        raise PaperkilnError("not a tokenizer.json: an id in 'vocab' is not a number")
    tokens = sorted(ids, key=ids.__getitem__)
    for i, token in enumerate(tokens):
        if ids[token] != i:
            raise PaperkilnError(
                f"its {len(ids)} ids are not 0 to {len(ids) - 1}: {i} is missing or given twice"
            )
    return tokens, specials, user_defined


def _read_merges(merges: list[Any]) -> list[Merge]:
    pairs = []
    for rank, merge in enumerate(merges):
        match merge.split(" ") if isinstance(merge, str) else merge:
            case [str(left), str(right)] if left and right:
                pairs.append((left, right))
            case _:
                raise PaperkilnError(f"merge {rank} is {merge!s:.40}, not a pair of tokens")
    return pairs
