"""A paper's model made small enough for a machine, its shape and flavours kept."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace

from paperkiln.errors import PaperkilnError
from paperkiln.papers.architecture import Scalar
from paperkiln.papers.emit.choices import GATED, MODEL_LIMITS, Choice, Choices
from paperkiln.papers.emit.counting import ParameterCount, count_parameters

CPU = 1_250_000  # parameters that train in minutes on two cores, a million beside the tables
_SMALLEST, _LARGEST = 20_000, 10**12
_STEP = 16  # widths are multiples of it
_TOKENS_PER_PARAMETER = 20  # beyond it more data pays less than more model (Hoffmann et al. 2022)


@dataclass(frozen=True)
class Shape:
    """The dimensions that a fit changes."""

    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_ff: int


def parse_size(text: str) -> int:
    """Return the parameters that `--fit` asks for: 'cpu', '500k', '3M', '1.5e6', '2_000_000'.

    Raises PaperkilnError for anything else.
    """
    if text.strip().lower() == "cpu":
        return CPU
    plain = text.strip().replace("_", "").replace(",", "")
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?(?:[eE]\d{1,2})?)\s?([kKmMbBgG]?)", plain)
    if not match:
        raise PaperkilnError(f"--fit {text[:40]!r}: write cpu, or parameters as in 500k or 3M")
    unit = {"": 1, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}[match[2].lower()]
    size = float(match[1]) * unit
    if not _SMALLEST <= size <= _LARGEST:
        raise PaperkilnError(
            f"--fit {text[:40]}: between {_SMALLEST:,} and {_LARGEST:,} parameters can be asked for"
        )
    return round(size)


def fit(choices: Choices, size: int) -> Choices:
    """Return the choices scaled down to about `size` parameters.

    A model within the size keeps its shape; its vocabulary, context and training are still cut
    to what such a model can use.
    """
    model = choices.model | _short_tables(choices.model, size)
    shape = shape_of(model)
    scaled = nearest(shape, size, lambda candidate: count(candidate, model).total)
    for name in ("d_model", "n_layers", "n_heads", "n_kv_heads", "d_ff"):
        model[name] = _changed(model[name], getattr(scaled, name))
    if scaled.head_dim * scaled.n_heads != scaled.d_model:
        own = model.get("head_dim", Choice(shape.head_dim))
        model["head_dim"] = _changed(own, scaled.head_dim)
    else:
        model.pop("head_dim", None)
    training = dict(choices.training)
    parameters = count(scaled, model).total
    tokens = int(model["context_length"].value) * _product(training, "batch", "steps")
    if scaled != shape or tokens > _TOKENS_PER_PARAMETER * parameters:
        small = _small_run(model, size, parameters)
        training |= {name: _changed(training[name], value) for name, value in small.items()}
    return replace(choices, model=model, training=training)


def _changed(choice: Choice, value: Scalar) -> Choice:
    return choice if choice.value == value else replace(choice, value=value, before=choice.value)


def shape_of(model: dict[str, Choice]) -> Shape:
    """Return the chosen dimensions."""
    d_model, heads = int(model["d_model"].value), int(model["n_heads"].value)
    head_dim = int(model["head_dim"].value) if "head_dim" in model else d_model // heads
    kv_heads, n_layers, d_ff = (int(model[n].value) for n in ("n_kv_heads", "n_layers", "d_ff"))
    return Shape(d_model, n_layers, heads, kv_heads, head_dim, d_ff)


def count(shape: Shape, model: dict[str, Choice]) -> ParameterCount:
    """Return the parameters of a shape with the chosen flavours and tables."""
    learned = model["positional"].value == "learned"
    counted = count_parameters(
        d_model=shape.d_model, n_layers=shape.n_layers, n_heads=shape.n_heads,
        n_kv_heads=shape.n_kv_heads, head_dim=shape.head_dim, d_ff=shape.d_ff,
        vocab_size=int(model["vocab_size"].value), gated=model["activation"].value in GATED,
        tied=bool(model["tied_embeddings"].value), bias=bool(model["bias"].value),
        norm=str(model["norm"].value), norm_placement=str(model["norm_placement"].value),
        learned_positions=int(model["context_length"].value) if learned else 0,
    )  # fmt: skip
    assert counted is not None  # every dimension is chosen
    return counted


def nearest(shape: Shape, size: int, total: Callable[[Shape], int]) -> Shape:
    """Return the shape of about `size` parameters that is most like `shape`, never larger.

    Width and depth shrink together. What counts against a candidate: a size off the mark, a
    depth to width unlike the paper's, narrower heads, other groups of key heads.
    """
    if total(shape) <= size:
        return shape
    fewest = min(2, shape.n_layers)
    narrower: list[Shape] = []
    for width in range(_STEP, shape.d_model + 1, _STEP):
        narrower.append(narrowed(shape, width))
        if total(replace(narrower[-1], n_layers=fewest)) > 2 * size:
            break  # wider ones are larger still
    narrower = narrower or [shape]

    def unlike(candidate: Shape) -> float:
        aspect = candidate.n_layers / candidate.d_model * shape.d_model / shape.n_layers
        group = candidate.n_heads / candidate.n_kv_heads * shape.n_kv_heads / shape.n_heads
        return (
            3 * abs(math.log(total(candidate) / size))
            + 0.5 * abs(math.log(aspect))
            + 0.25 * abs(math.log2(shape.head_dim / candidate.head_dim))
            + 0.25 * abs(math.log(group))
        )

    candidates = []
    for n_layers in range(fewest, shape.n_layers + 1):
        of_size = bisect_right(
            narrower, size, key=lambda s, n=n_layers: total(replace(s, n_layers=n))
        )
        near = narrower[max(0, of_size - 4) : of_size + 4]
        candidates += [replace(candidate, n_layers=n_layers) for candidate in near]
        if of_size == 0:
            break  # deeper ones are larger still
    return min(candidates, key=unlike)


def narrowed(shape: Shape, d_model: int) -> Shape:
    """Return the shape at another width: heads as wide as may be, feed-forward in proportion."""
    in_eights = round(shape.d_ff / shape.d_model * d_model / 8)
    d_ff = min(max(8, 8 * in_eights), shape.d_ff)
    group = max(1, shape.n_heads // shape.n_kv_heads)
    attention = shape.n_heads * shape.head_dim / shape.d_model * d_model
    whole = shape.n_heads * shape.head_dim == shape.d_model
    best: tuple[float, Shape] | None = None
    for head_dim in _head_dims(shape.head_dim):
        heads = max(1, round(attention / head_dim))
        if heads > MODEL_LIMITS["n_heads"].high or (whole and heads * head_dim != d_model):
            continue
        if shape.n_kv_heads == 1:
            kv_heads = 1
        else:
            kv_heads = min(
                (n for n in range(1, heads + 1) if heads % n == 0),
                key=lambda n: abs(math.log(heads / n / group)),
            )
        if heads == 1 < shape.n_heads or (group > 1 and kv_heads == heads):
            continue  # one head, or no groups, is another kind of attention
        unlike = abs(math.log2(shape.head_dim / head_dim))
        unlike += abs(math.log(heads / kv_heads / group))
        candidate = Shape(d_model, shape.n_layers, heads, kv_heads, head_dim, d_ff)
        if best is None or unlike < best[0]:
            best = unlike, candidate
    one_head = min(d_model, int(MODEL_LIMITS["head_dim"].high))
    return best[1] if best else Shape(d_model, shape.n_layers, 1, 1, one_head, d_ff)


def _head_dims(head_dim: int) -> list[int]:
    """Return the paper's width, its halves down to 8, and the usual widths below it."""
    widths = []
    while head_dim >= 8 and head_dim % 2 == 0:
        widths.append(head_dim)
        head_dim //= 2
    first = widths[0] if widths else head_dim
    return widths + [n for n in (64, 32, 16, 8) if n < first and n not in widths]


def _short_tables(model: dict[str, Choice], size: int) -> dict[str, Choice]:
    """Return the vocabulary and the context that a model of `size` can use, and its window.

    As depth and width shrink alike, d_model goes with size^(1/3), so a vocabulary that goes with
    size^(2/3) keeps its share of the parameters.
    """
    vocabulary, context = int(model["vocab_size"].value), int(model["context_length"].value)
    learned = min(vocabulary, max(512, _power_of_two(size ** (2 / 3) / 5)))
    short = min(context, longest_context(size))
    cut = {"vocab_size": learned, "context_length": short}
    if "window" in model:
        window = int(model["window"].value)
        cut["window"] = min(window, max(4, round(window / context * short)))
    return {name: _changed(model[name], value) for name, value in cut.items()}


def longest_context(size: int) -> int:
    """Return the tokens of context that a model of `size` parameters is trained with."""
    return max(64, _power_of_two(math.sqrt(size) / 4))


def _small_run(model: dict[str, Choice], size: int, parameters: int) -> dict[str, Scalar]:
    """Return the training of a small model: a few minutes for one of CPU parameters."""
    context = int(model["context_length"].value)
    batch = max(1, min(256, 8 * longest_context(size) // context))
    steps = 2 * parameters / (batch * context)
    steps = round(max(300, min(20_000, steps)), -2)
    # Post-norm needs a gentler start (Xiong et al. 2020).
    lr = 2e-3 if model["norm_placement"].value == "post" else 3e-3
    lr = float(f"{lr * min(1.0, (CPU / parameters) ** 0.25):.1g}")
    return {"batch": batch, "steps": int(steps), "warmup_steps": int(steps) // 10, "lr": lr}


def _power_of_two(value: float) -> int:
    return 1 << int(math.log2(max(1, value)))


def _product(training: dict[str, Choice], *names: str) -> int:
    return math.prod(int(training[name].value) for name in names)
