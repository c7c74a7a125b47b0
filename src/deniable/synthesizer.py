"""The same story in the words people know: fit, then sample."""

from dataclasses import dataclass
from typing import Any

from deniable.config import Config
from deniable.data.frames import Foreign
from deniable.data.schema import Schema
from deniable.errors import ConfigError
from deniable.pipeline import learn
from deniable.release.storage import Artefact


class Synthesizer:
    """A choice of options. ``fit`` gives another object, and that one can ``sample``.

    Args:
        options: As in ``Config``; checked at once.
    """

    def __init__(self, **options: Any) -> None:
        Config.assemble(options)
        self._options = options

    def fit(self, table: object, *, schema: Schema) -> "FittedSynthesizer":
        """Learn from a table: a path, or a pandas, polars or Arrow table."""
        return FittedSynthesizer(learn(table, schema, **self._options))

    def sample(self, records: int, *, key: int | None = None) -> Foreign:  # noqa: ARG002
        """Say that this object has not learnt anything: the one that ``fit`` returned has."""
        raise ConfigError(
            "a Synthesizer holds options only; sample from what fit returns: "
            "fitted = synthesizer.fit(table, schema=schema); fitted.sample(1000)"
        )


@dataclass(frozen=True)
class FittedSynthesizer:
    """A synthesizer that has learnt; it no longer needs the table."""

    artefact: Artefact

    @property
    def guarantee(self) -> str:
        """The sentence that says what is claimed of every record it gives."""
        return self.artefact.guarantee

    def sample(self, records: int, *, key: int | None = None) -> Foreign:
        """Return so many synthetic records, in the kind of frame that was fitted."""
        return self.artefact.generate(records, key=key)
