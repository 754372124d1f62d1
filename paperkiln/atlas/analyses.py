"""What a hypothesis asks of the rows of a study, as it is written in a pre-registration.

Standard library and pydantic only: the browser reads the registry with this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_serializer


def _check_text(text: str) -> str:
    if re.search(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text):
        raise ValueError("text is one line of printable characters")
    return text


PRINTABLE = AfterValidator(_check_text)
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$")]
Text = Annotated[str, Field(min_length=1, max_length=2000), PRINTABLE]
Label = Annotated[str, Field(min_length=1, max_length=200), PRINTABLE]
Date = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# Below the atlas folder, so that no receipt points outside of it.
Receipt = Annotated[
    str, Field(pattern=r"^(studies|preregistrations)(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$")
]
_MEASURE = r"[a-z][a-z0-9_]{0,39}(@[0-9]{1,9})?"
Metric = Annotated[str, Field(pattern=rf"^{_MEASURE}$", description="Of a row, or val@STEP.")]
Measure = Annotated[
    str, Field(pattern=rf"^{_MEASURE}( - {_MEASURE})?$", description="A metric, or how it changes.")
]
Term = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?$",
        description="A factor, or two of them as a:b, their interaction.",
    ),
]


class Strict(BaseModel):
    """What is read from files: no unknown names, no NaN, and never changed."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, validate_by_name=True
    )


class _Analysis(Strict):
    levels: dict[Name, tuple[Label, Label]] | None = Field(
        None, description="Low and high level of a factor that has more than two."
    )

    @model_serializer(mode="wrap")
    def _without_nothing(self, as_dict: Callable[[_Analysis], dict[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in as_dict(self).items() if value is not None}


class EffectAnalysis(_Analysis):
    """High minus low level of a factor over the whole design, or an interaction a:b."""

    kind: Literal["effect"]
    metric: Metric
    term: Term

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors that the analysis is about."""
        return tuple(self.term.split(":"))


class SimpleAnalysis(_Analysis):
    """The effect of a factor among the cells where other factors have the given levels."""

    kind: Literal["simple"]
    metric: Metric
    term: Name
    given: dict[Name, Label] = Field(min_length=1, max_length=20)

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors that the analysis is about."""
        return (self.term, *sorted(self.given))


class ChangeAnalysis(_Analysis):
    """How the effect on the lowest validation loss so far changes between two budgets (steps)."""

    kind: Literal["change"]
    metric: Literal["best_val"] = "best_val"
    term: Name
    start: int = Field(alias="from", ge=1, description="Steps.")
    end: int = Field(alias="to", ge=1, description="Steps.")

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors that the analysis is about."""
        return (self.term,)


Analysis = Annotated[EffectAnalysis | SimpleAnalysis | ChangeAnalysis, Field(discriminator="kind")]
