"""Options that depend on the schema: the estimator that can learn it, and the target columns."""

from dataclasses import replace

from deniable.config import Config
from deniable.errors import ConfigError
from deniable.schema.schema import Schema
from deniable.schema.target_columns import find_target_fault


def resolve_options(config: Config, schema: Schema) -> Config:
    """Choose the options that were not given by the schema; refuse those that do not fit it.

    The estimator must be able to learn the schema. Targets of the options replace the schema's;
    an empty list removes them. Resolving twice changes nothing.

    Raises:
        ConfigError: A target is not a learnt column, or the model has no pairs.
    """
    if config.estimator is None and any(a.model != "histogram" for a in schema.attributes):
        config = replace(config, estimator="norm-sub")
    if config.target is None:
        return replace(config, target=schema.target) if config.uses_pairs else config
    if config.target and (fault := find_target_fault(schema.columns, config.target)):
        raise ConfigError(fault)
    if config.target and not config.uses_pairs:
        raise ConfigError(
            f"target needs estimator = pairs, and this run has {config.chosen_estimator}: leave "
            "--target out, or use --estimator pairs"
        )
    return replace(config, target=tuple(dict.fromkeys(config.target)))
