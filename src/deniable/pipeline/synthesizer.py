"""Synthesizer: the same run with the methods ``fit`` and ``sample``."""

from dataclasses import dataclass
from typing import Unpack

from deniable.config import Config, MoreOptions, Options
from deniable.data.dataframes import Foreign
from deniable.errors import ConfigError
from deniable.pipeline.api import SchemaSource, learn
from deniable.release.artefact import Artefact
from deniable.schema.schema import Schema


class Synthesizer:
    """The options of a run. ``fit`` returns another object, which can ``sample``.

    Args:
        schema: The schema, or the path of its TOML file, unless ``fit`` is given one.
        epsilon: ε of the whole release (tested: of its model); inf: no noise, no guarantee.
        delta: δ of the whole release (tested: of its model).
        k: Least number of rows behind every copied combination of values.
        options: The other options: see ``Config``. All are checked at once.
    """

    def __init__(
        self,
        *,
        schema: SchemaSource | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-9,
        k: int = 50,
        **options: Unpack[MoreOptions],
    ) -> None:
        if not (schema is None or isinstance(schema, Schema)):
            schema = Schema.read(schema)
        self._schema = schema
        self._options: Options = {"epsilon": epsilon, "delta": delta, "k": k, **options}
        Config.assemble(self._options)

    def fit(self, table: object, *, schema: SchemaSource | None = None) -> "FittedSynthesizer":
        """Learn from a table: a path, or a pandas, polars or Arrow table.

        Args:
            table: The confidential table.
            schema: The schema, or the path of its TOML file, in place of the Synthesizer's own.
        """
        chosen = self._schema if schema is None else schema
        if chosen is None:
            raise ConfigError(
                "there is no schema: give fit one, as in fit(table, schema=schema), or "
                "dn.Synthesizer(schema=schema)"
            )
        return FittedSynthesizer(learn(table, chosen, **self._options))

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

    def _repr_html_(self) -> str:
        return self.artefact._repr_html_()

    @property
    def guarantee(self) -> str:
        """The guarantee of every record, in one sentence."""
        return self.artefact.guarantee

    def sample(self, records: int, *, key: int | None = None) -> Foreign:
        """Generate records, in the kind of data frame that was fitted."""
        return self.artefact.generate(records, key=key)
