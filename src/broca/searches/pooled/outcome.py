"""The outcome of a search: one of three answers, and the best set."""

from dataclasses import dataclass

from broca.measurement import Bools
from broca.results.localization import AnswerInfo


@dataclass(frozen=True)
class Outcome:
    """The outcome of a search.

    Attributes:
        answer: The answer, one of three.
        members: The best set, `(components,)`.
        worth: Specific drop of the set.
        error: Standard error of the worth.
        bound: Upper bound, at 95 %, of the worth of the best set, by effects of components and
            pairs.
        joint: Upper bound, at 95 %, of what masks of the screen lose beyond the sum of what their
            components cost alone.
        hidden: Where a better set may be, so that no bound is stated; empty for nowhere.
    """

    answer: AnswerInfo
    members: Bools
    worth: float
    error: float
    bound: float
    joint: float
    hidden: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether the set is a finding."""
        return self.answer.says == "found"

    @property
    def reason(self) -> str:
        """Why nothing was selected; empty otherwise."""
        best = f"the best set costs the task {self.worth:.2f} +- {self.error:.2f} more than others"
        if self.is_finding:
            return ""
        if self.answer.says == "nothing":
            return f"no specific harm: no set costs {self.bound:.2f} or more at 95 %, {best}"
        if self.hidden:
            best += f", but {self.hidden}"
        if self.answer.rows_needed is not None:
            best += f"; about {self.answer.rows_needed:,} rows would do"
        return f"not enough rows to tell: {best}"
