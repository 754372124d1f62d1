"""The layout of a Hugging Face tokenizer.json: written for ours, read defensively for anyone's.

Standard library only: the browser runs this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from paperkiln.errors import PaperkilnError
from paperkiln.train.pretokenize import GPT2_PATTERN, WORD_PATTERN

Kind = Literal["bpe", "word", "byte"]
Merge = tuple[str, str]

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
_WORD_SPLIT = {
    "type": "Split",
    "pattern": {"Regex": WORD_PATTERN},
    "behavior": "Isolated",
    "invert": False,
}
_ADDED_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def write_layout(
    kind: Kind, tokens: Sequence[str], merges: Iterable[Merge], specials: dict[str, int]
) -> dict[str, Any]:
    """The contents of tokenizer.json for a vocabulary in id order and merges by rank."""
    vocab = {token: i for i, token in enumerate(tokens)}
    if kind == "word":
        pre_tokenizer, decoder = _WORD_SPLIT, {"type": "Fuse"}
        model = {"type": "WordLevel", "vocab": vocab, "unk_token": UNKNOWN}
    else:
        pre_tokenizer = decoder = _BYTE_LEVEL
        # "a b" and not ["a", "b"]: readers of any age take it, and byte-level tokens hold no space.
        model = _PLAIN_BPE | {"vocab": vocab, "merges": [" ".join(pair) for pair in merges]}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": name, **_ADDED_FLAGS, "special": True}
            for name, i in sorted(specials.items(), key=lambda special: special[1])
        ],
        "normalizer": None,
        "pre_tokenizer": dict(pre_tokenizer),
        "post_processor": None,
        "decoder": dict(decoder),
        "model": model,
    }


def read_layout(data: Any) -> tuple[Kind, list[str], list[Merge], dict[str, int]]:
    """Kind, tokens in id order, merges by rank and specials of a tokenizer.json.

    Read are ours and GPT-2-style byte-level BPE; all added tokens count as specials, and a
    post-processor is not applied, for encoding adds no id of its own. Raises PaperkilnError naming
    what is missing or not supported.
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
    _refuse_other_pieces(kind, data.get("pre_tokenizer"))
    tokens, specials = _read_vocabulary(model, _entry(data, "added_tokens", list))
    if kind == "WordLevel":
        return "word", tokens, [], specials
    return "bpe", tokens, _read_merges(_entry(model, "merges", list)), specials


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
        "ignore_merges",
        "dropout",
        "continuing_subword_prefix",
        "end_of_word_suffix",
    ):
        if model.get(key):
            raise PaperkilnError(f"BPE with {key} is not supported, only GPT-2's byte-level BPE")


def _refuse_other_pieces(kind: str, pre_tokenizer: Any) -> None:
    ours = _WORD_SPLIT if kind == "WordLevel" else _BYTE_LEVEL
    # `use_regex` is younger than GPT-2's own file; trim_offsets concerns no id.
    found = {"use_regex": True} | pre_tokenizer if isinstance(pre_tokenizer, dict) else {}
    if any(found.get(key) != ours[key] for key in ours.keys() - {"trim_offsets"}):
        pattern = WORD_PATTERN if kind == "WordLevel" else GPT2_PATTERN
        raise PaperkilnError(
            f"its pre-tokenizer is not supported, only {ours['type']} without a prefix space, "
            f"which cuts by {pattern}"
        )


def _read_vocabulary(model: dict[str, Any], added: list[Any]) -> tuple[list[str], dict[str, int]]:
    specials = {_entry(token, "content", str): _entry(token, "id", int) for token in added}
    for token in added:
        if any(token.get(flag) for flag in ("single_word", "lstrip", "rstrip")):
            raise PaperkilnError(
                f"added token {token['content']!r} depends on the text beside it: not supported"
            )
    ids = _entry(model, "vocab", dict) | specials
    if not all(isinstance(i, int) for i in ids.values()):
        raise PaperkilnError("not a tokenizer.json: an id in 'vocab' is not a number")
    tokens = sorted(ids, key=ids.__getitem__)
    for i, token in enumerate(tokens):
        if ids[token] != i:
            raise PaperkilnError(
                f"its {len(ids)} ids are not 0 to {len(ids) - 1}: {i} is missing or given twice"
            )
    return tokens, specials


def _read_merges(merges: list[Any]) -> list[Merge]:
    pairs = []
    for rank, merge in enumerate(merges):
        match merge.split(" ") if isinstance(merge, str) else merge:
            case [str(left), str(right)] if left and right:
                pairs.append((left, right))
            case _:
                raise PaperkilnError(f"merge {rank} is {merge!s:.40}, not a pair of tokens")
    return pairs
