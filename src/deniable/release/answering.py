"""Answering: the methods of an artefact that a higher layer computes.

``deniable.answers`` is built on artefacts, so it is a layer above them; but users look for its
functions on the artefact itself. So the methods here import it by name when they are called. No
other module imports a higher layer (a rule of ``tests/test_shape.py``).
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, TypedDict, Unpack, cast

from deniable.data.dataframes import Foreign
from deniable.release.query_answer import BandRule, QueryAnswer


class ConditionalRequest(TypedDict, total=False):
    """What records are drawn given: keywords of ``Artefact.generate``, all optional.

    Attributes:
        given: Rows with some cells filled, to complete: a path, or a data frame.
        records_each: How often each given row is completed; once by default.
        given_is_public: Whether the given rows are public, so that the result may leave.
        where: A condition, such as ``age >= 65 and income = "high"``.
        balance: A column whose values get equal shares, or ``"income: 0.5, 0.5"``.
    """

    given: object
    records_each: int
    given_is_public: bool
    where: str | None
    balance: str | None


class _Answer(Protocol):
    def __call__(
        self,
        artefact: Any,
        columns: str | Sequence[str],
        *,
        where: str | None,
        by: Mapping[str, BandRule] | None,
        sampling_error: bool,
    ) -> QueryAnswer: ...


class Answering:
    """An artefact that answers questions, and completes rows."""

    def query(
        self,
        columns: str | Sequence[str],
        *,
        where: str | None = None,
        by: Mapping[str, BandRule] | None = None,
        sampling_error: bool = False,
    ) -> QueryAnswer:
        """Estimate counts, shares, means and quantiles, each with a 95 % interval.

        Computed from noisy counts and the known law of their noise. Post-processing: no cost.

        Args:
            columns: One column or two; for more, the model answers, without intervals.
            where: A condition on rows, as in ``age >= 65 and income = "More than 50,000"``.
            by: The cells of a column, by its name: "values", "bins" or "groups" of the artefact,
                "buckets" of the schema, a width, a list of lower edges, or lists of values by name.
            sampling_error: Whether the table is a random sample, and the intervals are for its
                population.
        """
        answer = cast("_Answer", import_module("deniable.answers.query").query)
        return answer(self, columns, where=where, by=by, sampling_error=sampling_error)


def draw_conditional(
    artefact: Any,
    records: int | None,
    *,
    key: int | None,
    workers: int | None,
    **request: Unpack[ConditionalRequest],
) -> Foreign:
    """Draw the records of a request, as a data frame."""
    generate = import_module("deniable.answers.conditional_release").generate_conditional
    return generate(artefact, records, key=key, workers=workers, **request).frame()
