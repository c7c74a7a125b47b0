"""Request for records given something: the arguments of ``Artefact.generate``."""

from typing import TypedDict


class ConditionalRequest(TypedDict, total=False):
    """What records are drawn given; all of them are optional.

    Attributes:
        given: Rows with some cells filled, to complete: a path, or a data frame.
        records_each: How often each given row is completed; once by default.
        given_is_public: Whether the given rows are public, so that the result may leave.
        smooth_impossible: Whether given rows to which the model gives probability 0 are completed
            with a smoothed model; otherwise they are an error.
        where: A condition, such as ``age >= 65 and income = "high"``.
        balance: A column whose values get equal shares, or ``"income: 0.5, 0.5"``.
    """

    given: object
    records_each: int
    given_is_public: bool
    smooth_impossible: bool
    where: str | None
    balance: str | None
