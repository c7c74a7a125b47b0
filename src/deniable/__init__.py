"""Synthetic records with a privacy guarantee that is proved, printed and checkable."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.answers.query import query
    from deniable.answers.verify_records import verify
    from deniable.config import Config
    from deniable.drafting.draft import draft_schema
    from deniable.errors import (
        ArtefactError,
        BudgetError,
        ConfigError,
        DataError,
        DeniableError,
        InputError,
        InvariantError,
        OutputError,
        SchemaError,
        VerificationError,
    )
    from deniable.evaluation.evaluate import evaluate
    from deniable.model.protocol import GenerativeModel
    from deniable.model.seed_based import NetworkModel
    from deniable.pipeline.api import generate, learn, plan, synthesize
    from deniable.pipeline.synthesizer import Synthesizer
    from deniable.release.artefact import Artefact, load
    from deniable.release.release import Release
    from deniable.schema.attribute import Attribute
    from deniable.schema.schema import Schema

# The module of each public name. A name is imported when it is first used, so that a program pays
# only for the parts it needs.
_HOMES = {
    "Artefact": "release.artefact",
    "ArtefactError": "errors",
    "Attribute": "schema.attribute",
    "BudgetError": "errors",
    "Config": "config",
    "ConfigError": "errors",
    "DataError": "errors",
    "DeniableError": "errors",
    "GenerativeModel": "model.protocol",
    "InputError": "errors",
    "InvariantError": "errors",
    "NetworkModel": "model.seed_based",
    "OutputError": "errors",
    "Release": "release.release",
    "Schema": "schema.schema",
    "SchemaError": "errors",
    "Synthesizer": "pipeline.synthesizer",
    "VerificationError": "errors",
    "draft_schema": "drafting.draft",
    "evaluate": "evaluation.evaluate",
    "generate": "pipeline.api",
    "learn": "pipeline.api",
    "load": "release.artefact",
    "plan": "pipeline.api",
    "query": "answers.query",
    "synthesize": "pipeline.api",
    "verify": "answers.verify_records",
}

__all__ = [
    "Artefact",
    "ArtefactError",
    "Attribute",
    "BudgetError",
    "Config",
    "ConfigError",
    "DataError",
    "DeniableError",
    "GenerativeModel",
    "InputError",
    "InvariantError",
    "NetworkModel",
    "OutputError",
    "Release",
    "Schema",
    "SchemaError",
    "Synthesizer",
    "VerificationError",
    "draft_schema",
    "evaluate",
    "generate",
    "learn",
    "load",
    "plan",
    "query",
    "synthesize",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'deniable' has no attribute {name!r}")
    return getattr(import_module(f"deniable.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
