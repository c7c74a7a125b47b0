"""Full synthetic records with a privacy guarantee that is proved, printed and checkable."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.config import Config
    from deniable.data.attributes import Attribute
    from deniable.data.schema import Schema
    from deniable.errors import DeniableError
    from deniable.model.generative import GenerativeModel
    from deniable.model.perturbation import PerturbationModel
    from deniable.model.synthesis import NetworkModel
    from deniable.pipeline import learn, plan, synthesize
    from deniable.release.storage import Artefact, load
    from deniable.release.verify import verify
    from deniable.release.whole import Release
    from deniable.synthesizer import Synthesizer

# Where each public name lives. They are imported when they are asked for, so that a program that
# wants one does not pay for all.
_HOMES = {
    "Artefact": "release.storage",
    "Attribute": "data.attributes",
    "Config": "config",
    "DeniableError": "errors",
    "GenerativeModel": "model.generative",
    "NetworkModel": "model.synthesis",
    "PerturbationModel": "model.perturbation",
    "Release": "release.whole",
    "Schema": "data.schema",
    "Synthesizer": "synthesizer",
    "learn": "pipeline",
    "load": "release.storage",
    "plan": "pipeline",
    "synthesize": "pipeline",
    "verify": "release.verify",
}

__all__ = [
    "Artefact",
    "Attribute",
    "Config",
    "DeniableError",
    "GenerativeModel",
    "NetworkModel",
    "PerturbationModel",
    "Release",
    "Schema",
    "Synthesizer",
    "learn",
    "load",
    "plan",
    "synthesize",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'deniable' has no attribute {name!r}")
    return getattr(import_module(f"deniable.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
