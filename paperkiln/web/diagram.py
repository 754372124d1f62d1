"""A decoder as a picture: the blocks that will be built, with their shapes, as SVG and in words.

Colours and fonts are the page's: the SVG only names classes. Everything in it is a number or a
name that pydantic has checked.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from paperkiln.models.config import ModelConfig, count_parameters, parameter_shapes

_WIDTH, _LEFT, _RIGHT = 360, 64, 330  # of the picture, and of the boxes in it
_CENTRE = (_LEFT + _RIGHT) / 2
_BOX, _GAP = 46, 16  # height of a box, and of an arrow
_NAMES = {
    "layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "relu": "ReLU", "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)", "silu": "SiLU", "squared_relu": "ReLU²", "swiglu": "SwiGLU",
    "geglu": "GeGLU", "reglu": "ReGLU",
}  # fmt: skip


class Box(NamedTuple):
    """One step: what it is, what shapes it holds, and how many parameters."""

    kind: str  # a class of the page's style
    title: str
    detail: str
    parameters: int = 0


def draw(config: ModelConfig) -> dict[str, str]:
    """Return the picture as `svg` and the same in words as `words`."""
    before, block, after = _before(config), _block(config), _after(config)
    painter = _Painter()
    painter.label("tokens (B, T)")
    for box in before:
        painter.box(box)
    painter.frame(block, config)
    for box in after:
        painter.box(box)
    painter.label("logits (B, T, V)", arrow=True)
    words = _in_words(config, before, block, after)
    return {"svg": painter.svg(words), "words": words}


# --- what is built ----------------------------------------------------------------------------


def _count(config: ModelConfig, *beginnings: str) -> int:
    shapes = parameter_shapes(config)
    return sum(prod(shape) for name, shape in shapes.items() if name.startswith(beginnings))


def _before(c: ModelConfig) -> list[Box]:
    scale = " × √D" if c.scale_embeddings else ""
    embed = Box("embed", f"Embedding{scale}", f"V {c.vocab_size:,} → D {c.d_model:,}",
                _count(c, "embed."))  # fmt: skip
    boxes = [embed]
    if c.positional == "learned":
        detail = f"+ one vector for each of {c.context_length:,}"
        boxes.append(Box("position", "Learned positions", detail, _count(c, "pos.")))
    if c.positional == "sinusoidal":
        boxes.append(Box("position", "Sinusoidal positions", "+ sines and cosines, not trained"))
    if c.dropout:
        boxes.append(Box("drop", f"Dropout {c.dropout:g}", "here and after each half of a block"))
    return boxes


def _block(c: ModelConfig) -> list[list[Box]]:
    """Return the two halves of a block, each with its norm before or after."""
    norms = [_norm(c, f"blocks.0.norm{i}.") for i in (1, 2)]
    halves = [_attention(c), _feed_forward(c)]
    return [[norm, half] if c.norm_placement == "pre" else [half, norm]
            for norm, half in zip(norms, halves, strict=True)]  # fmt: skip


def _norm(c: ModelConfig, name: str) -> Box:
    bias = ", with bias" if c.bias and c.norm == "layernorm" else ""
    return Box("norm", _NAMES[c.norm], f"ε {c.norm_eps:g}{bias}", _count(c, name))


def _attention(c: ModelConfig) -> Box:
    title = "Attention" if c.attention == "exact" else f"Sliding window {c.window:,}"
    if c.attention == "swa" and c.sinks:
        title += f" + {c.sinks:,} sinks"
    shared = {c.n_heads: "", 1: ", MQA"}.get(c.n_kv_heads, ", GQA")
    heads = f"H {c.n_heads} · K {c.n_kv_heads} · E {c.head_dim}{shared}"
    positions = {"rope": f" · RoPE θ {c.rope_theta:,.0f}", "alibi": " · ALiBi"}
    return Box("mix", title, heads + positions.get(c.positional, ""), _count(c, "blocks.0.attn."))


def _feed_forward(c: ModelConfig) -> Box:
    gate = "2 × " if c.gated else ""
    detail = f"D {c.d_model:,} → {gate}F {c.d_ff:,} → D"
    return Box("ffn", f"Feed-forward, {_NAMES[c.activation]}", detail, _count(c, "blocks.0.ffn."))


def _after(c: ModelConfig) -> list[Box]:
    boxes = [_norm(c, "norm.")] if c.norm_placement == "pre" else []
    if c.tied_embeddings:
        return [*boxes, Box("embed", "Head", "the embedding, transposed")]
    head = Box("embed", "Head", f"D {c.d_model:,} → V {c.vocab_size:,}", _count(c, "head."))
    return [*boxes, head]


def _in_words(
    c: ModelConfig, before: list[Box], block: list[list[Box]], after: list[Box]
) -> str:  # fmt: skip
    def say(boxes: list[Box]) -> str:
        return "; ".join(f"{box.title} ({box.detail})" for box in boxes)

    inside = "; ".join(f"{say(half)}, added to its input" for half in block)
    if c.norm_placement == "post":
        inside = "; ".join(
            f"{say(half[:1])}, added to its input, then {say(half[1:])}" for half in block
        )
    return (
        f"A decoder of {count_parameters(c):,} parameters. {say(before)}. "
        f"{c.n_layers} {'block' if c.n_layers == 1 else 'blocks'} of: {inside}. {say(after)}."
    )


# --- how it is drawn --------------------------------------------------------------------------


class _Painter:
    """Draws from the top down; `y` is where the next thing begins."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = 4.0

    def text(self, x: float, y: float, kind: str, words: str, anchor: str = "middle") -> None:
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">'
                          f"{words}</text>")  # fmt: skip

    def path(self, d: str, kind: str = "wire", end: bool = False) -> None:
        marker = ' marker-end="url(#arrow)"' if end else ""
        self.parts.append(f'<path d="{d}" class="{kind}"{marker}/>')

    def arrow(self) -> None:
        self.path(f"M{_CENTRE:g} {self.y:g}v{_GAP - 2}", end=True)
        self.y += _GAP

    def label(self, words: str, arrow: bool = False) -> None:
        if arrow:
            self.arrow()
        self.text(_CENTRE, self.y + 12, "end", words)
        self.y += 18

    def box(self, box: Box, arrow: bool = True) -> None:
        if arrow:
            self.arrow()
        self.parts.append(
            f'<rect x="{_LEFT}" y="{self.y:g}" width="{_RIGHT - _LEFT}" height="{_BOX}" rx="7" '
            f'class="box {box.kind}"/>'
        )
        self.text(_LEFT + 14, self.y + 19, "title", box.title, "start")
        self.text(_LEFT + 14, self.y + 35, "detail", box.detail, "start")
        if box.parameters:
            self.text(_RIGHT - 12, self.y + 19, "count", short(box.parameters), "end")
        self.y += _BOX

    def frame(self, halves: list[list[Box]], c: ModelConfig) -> None:
        """Draw one block inside its frame, with the way around each half."""
        self.arrow()
        top = self.y
        at = len(self.parts)
        for i, half in enumerate(halves):
            self.half(half, c.norm_placement == "pre", first=i == 0)
        self.y += 12
        frame = (
            f'<rect x="20" y="{top:g}" width="{_WIDTH - 24}" height="{self.y - top:g}" rx="12" '
            f'class="frame"/>'
        )
        self.parts.insert(at, frame)
        self.text(_WIDTH - 16, top + 20, "times", f"× {c.n_layers:,}", "end")

    def half(self, boxes: list[Box], pre: bool, first: bool) -> None:
        """Draw a sublayer: its input also goes around it and is added to its output."""
        split, inlet = self.y + (12 if first else 6), 30 if first else 22
        self.path(f"M{_CENTRE:g} {self.y:g}v{inlet - 2}", end=True)
        self.y += inlet
        inside, outside = (boxes, []) if pre else (boxes[:1], boxes[1:])
        for i, box in enumerate(inside):
            self.box(box, arrow=i > 0)
        self.arrow()
        plus = self.y + 9
        self.path(f"M{_CENTRE:g} {split:g}H44V{plus:g}H{_CENTRE - 11:g}", "wire around", end=True)
        self.parts.append(f'<circle cx="{_CENTRE:g}" cy="{plus:g}" r="9" class="plus"/>')
        self.path(f"M{_CENTRE - 4:g} {plus:g}h8m-4 -4v8", "wire")
        self.y += 18
        for box in outside:
            self.box(box)

    def svg(self, words: str) -> str:
        height = self.y + 4
        marker = (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
            'markerHeight="6" orient="auto"><path d="M0 0 8 4 0 8z" class="tip"/></marker></defs>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" '
            f'role="img" aria-label="{words}">{marker}{"".join(self.parts)}</svg>'
        )


def short(n: int) -> str:
    """Return a count in three digits: 1.23M."""
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g}{unit}"
    return str(n)


def shapes(config: ModelConfig) -> dict[str, Any]:
    """Return every parameter's shape, for whoever wants the list behind the picture."""
    return {name: list(shape) for name, shape in parameter_shapes(config).items()}
