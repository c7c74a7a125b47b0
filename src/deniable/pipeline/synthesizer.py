"""Synthesizer: the same run with the methods ``fit`` and ``sample``."""

from dataclasses import dataclass
from typing import Unpack

from deniable.config import Config, Options
from deniable.data.dataframes import Foreign
from deniable.errors import ConfigError
from deniable.pipeline.api import SchemaSource, learn
from deniable.release.artefact import Artefact


class Synthesizer:
    """The options of a run. ``fit`` returns another object, which can ``sample``.

    Args:
        options: See ``Config``; checked at once.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        Config.assemble(options)
        self._options = options

    def fit(self, table: object, *, schema: SchemaSource) -> "FittedSynthesizer":
        """Learn from a table: a path, or a pandas, polars or Arrow table."""
        return FittedSynthesizer(learn(table, schema, **self._options))

    def sample(self, records: int, *, key: int | None = None) -> Foreign:  # noqa: ARG002
        """Raise an error: only the object that ``fit`` returns has a model to sample from."""
        raise ConfigError(
            "a Synthesizer holds options only; sample from what fit returns: "
            "fitted = synthesizer.fit(table, schema=schema); fitted.sample(1000)"
        )


@dataclass(frozen=True)
class FittedSynthesizer:
    """A fitted synthesizer; it no longer needs the table."""

    artefact: Artefact

    @property
    def guarantee(self) -> str:
        """The guarantee of every record, in one sentence."""
        return self.artefact.guarantee

    def sample(self, records: int, *, key: int | None = None) -> Foreign:
        """Generate records, in the kind of data frame that was fitted."""
        return self.artefact.generate(records, key=key)
