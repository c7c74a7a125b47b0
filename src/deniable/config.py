"""Config: every option of a run, checked, and assembled from flags, a file, a profile, defaults."""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self, get_args

from deniable.errors import ConfigError

Mode = Literal["one-shot", "seedless", "tested", "randomized"]
DataUse = Literal["whole", "split"]
Profile = Literal["default", "paper"]
Parameters = Literal["mean", "drawn"]
Estimator = Literal["pairs", "back-off", "norm-sub", "clip"]

# What the paper used (Sec. 6.1), and our choice where it is silent.
_PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "mode": "randomized",
        "data_use": "split",
        "k": 50,
        "gamma": 4.0,
        "epsilon0": 1.0,
        "omega": "5-11",
        "max_cost": 300,
        "estimator": "clip",
        "alpha": 1.0,
    },
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """The options of a run. One that exists makes sense by itself; the schema may still object.

    Attributes:
        epsilon: ε of the whole release (of the model alone in mode ``tested``); inf: no noise.
        delta: δ of the same.
        mode: What happens to the seeds.
        profile: Where options that are not given come from.
        data_use: Whether all records serve every stage, or each record one.
        k: Records that must share what a released record kept.
        omega: How many attributes are drawn: "auto", "9", or "9-11", one for each record.
        omega_known: Whether a candidate is tested under its own ω, or as if nobody knew it.
        gamma: Width of the ranges of probabilities, for a hidden ω or a user's model.
        epsilon0: Noise of the threshold in mode ``randomized``; None: the best.
        t: Where the proof for ``randomized`` splits small ranges from large; None: the best.
        max_cost: The most parent configurations of an attribute; None: 12,000 for ``pairs``, else
            300.
        estimator: How noisy counts become a model. ``pairs``: values and pairs are counted, and
            tables fitted to them. ``back-off``, ``norm-sub`` and ``clip``, the paper's: a graph
            is learnt from entropies, its tables are counted. None: ``pairs``, unless a graph is
            given.
        alpha: The prior count of every value in every configuration.
        parameters: The posterior's mean, or one draw from it for each configuration.
        graph: Parents by name, in place of a learnt graph.
        order: All names in the order they are drawn, in place of the one we choose.
        rows_max: A public guess of the table's size; None: the schema's.
        seeds_share: The seeds' share of ε in mode ``one-shot``; None: by rule, 0.03 to 0.1.
        values_share: The values' share of what ``pairs`` has, as variance; None: by public facts.
        max_plausible: Where a scan for plausible seeds may stop.
        max_check_plausible: How many seeds a scan looks at.
        max_attempts: Candidates tried for each record asked for, before giving up.
        workers: Threads; None: one for each core.
        accept_drafted_schema: Whether descriptions read off the data may be used unconfirmed.
    """

    epsilon: float = 1.0
    delta: float = 1e-9
    mode: Mode | None = None
    profile: Profile = "default"
    data_use: DataUse = "whole"
    k: int = 50
    omega: str = "auto"
    omega_known: bool = True
    gamma: float = 4.0
    epsilon0: float | None = None
    t: int | None = None
    max_cost: int | None = None
    estimator: Estimator | None = None
    alpha: float = 1.0
    parameters: Parameters = "mean"
    graph: Mapping[str, list[str]] | None = field(default=None)
    order: tuple[str, ...] | None = None
    rows_max: int | None = None
    seeds_share: float | None = None
    values_share: float | None = None
    max_plausible: int | None = None
    max_check_plausible: int | None = None
    max_attempts: int = 1000
    workers: int | None = None
    accept_drafted_schema: bool = False

    def __post_init__(self) -> None:
        for name, (lowest, highest) in _NUMBERS.items():
            value = getattr(self, name)
            if value is not None and not lowest <= value <= highest:
                raise ConfigError(f"{name} = {value}: must lie between {lowest:g} and {highest:g}")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise ConfigError(f'{name} = "{value}": must be one of {", ".join(choices)}')
        if self.epsilon == 0:
            raise ConfigError("epsilon = 0: nothing can be learnt; give more than zero, or inf")
        if self.delta >= 1:
            raise ConfigError(f"delta = {self.delta}: promises nothing; 1e-9 is a common choice")
        if self.epsilon0 == 0:
            raise ConfigError("epsilon0 = 0: no test passes; give more than zero, or leave it out")
        if self.gamma <= 1:
            raise ConfigError(f"gamma = {self.gamma}: ranges of probabilities need more than 1")
        parse_omega(self.omega)
        self._require_estimator()

    def _require_estimator(self) -> None:
        """Refuse an estimator that contradicts what else was said."""
        given = self.graph is not None or self.order is not None
        if self.estimator == "pairs" and given:
            raise ConfigError(
                "estimator = pairs finds its own graph and order; say norm-sub for given ones"
            )
        if self.estimator == "back-off" and self.parameters == "drawn":
            raise ConfigError(
                "parameters = drawn are of a posterior; say norm-sub, or leave it out"
            )
        if self.estimator == "pairs" and self.profile == "paper":
            raise ConfigError("the paper counts a graph's tables, not pairs; say clip or norm-sub")

    @property
    def chosen_estimator(self) -> Estimator:
        """How noisy counts become a model, where nobody said: see ``estimator``."""
        if self.estimator is not None:
            return self.estimator
        return "pairs" if self.graph is None and self.order is None else "norm-sub"

    @property
    def uses_pairs(self) -> bool:
        """Whether the model is made of values and pairs, not of a graph's tables."""
        return self.chosen_estimator == "pairs"

    @property
    def most_configurations(self) -> int:
        """The most parent configurations of an attribute."""
        return self.max_cost or (12_000 if self.uses_pairs else 300)

    @classmethod
    def assemble(cls, given: Mapping[str, Any], file: str | Path | None = None) -> Self:
        """Return the options: those given, then the file's, then the profile's, then defaults.

        Args:
            given: Options by name; one that is None was not given.
            file: A TOML file with options by name.
        """
        flags = {name: value for name, value in given.items() if value is not None}
        written = read_options(file) if file is not None else {}
        profile = flags.get("profile", written.get("profile", "default"))
        if not isinstance(profile, str) or profile not in _PROFILES:
            raise ConfigError(f'profile = "{profile}": must be one of {", ".join(_PROFILES)}')
        usual = dict(_PROFILES[profile])
        chosen = written | flags
        if chosen.get("mode") == "seedless":
            usual.pop("omega", None)  # it says what to keep of seeds, and there are none
        options = {**usual, **chosen}
        return cls(**{name: _convert(name, value) for name, value in options.items()})


def parse_omega(text: str) -> tuple[int, ...] | None:
    """Return the ω that an option means, ascending; None for "auto".

    >>> parse_omega("9"), parse_omega("9-11"), parse_omega("auto")
    ((9,), (9, 10, 11), None)
    """
    if text == "auto":
        return None
    written = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if written is None:
        raise ConfigError(
            f'omega = "{text}": write auto, a number such as 9, or a range such as 9-11'
        )
    first, last = int(written[1]), int(written[2] or written[1])
    if not 1 <= first <= last:
        raise ConfigError(f'omega = "{text}": at least 1, and a range goes upwards')
    return tuple(range(first, last + 1))


def read_options(path: str | Path) -> dict[str, Any]:
    """Return the options of a configuration file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        return {name.replace("-", "_"): value for name, value in tomllib.loads(text).items()}
    except OSError as fault:
        raise ConfigError(f"{path}: cannot be read ({fault.strerror}); check --config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path}: not a TOML file ({fault}); see docs/story.md") from None


_NUMBERS: dict[str, tuple[float, float]] = {
    "epsilon": (0, math.inf),
    "delta": (0, 1),
    "k": (1, 2**53),
    "gamma": (1, 2**53),
    "epsilon0": (0, 2**53),
    "t": (1, 2**53),
    "max_cost": (1, 2**31),
    "alpha": (2.0**-40, 2**53),
    "rows_max": (1, 2**53),
    "seeds_share": (0.001, 0.9),
    "values_share": (0.01, 0.99),
    "max_plausible": (1, 2**53),
    "max_check_plausible": (1, 2**53),
    "max_attempts": (1, 2**53),
    "workers": (1, 1024),
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "mode": get_args(Mode),
    "profile": get_args(Profile),
    "data_use": get_args(DataUse),
    "estimator": get_args(Estimator),
    "parameters": get_args(Parameters),
}
_WHOLE = {"k", "t", "max_cost", "rows_max", "max_plausible", "max_check_plausible"} | {
    "max_attempts",
    "workers",
}


def require_known(names: Iterable[str]) -> None:
    """Refuse a name that is not an option's."""
    known = {f.name for f in fields(Config)}
    for name in names:
        if name not in known:
            raise ConfigError(f'there is no option "{name}"; deniable synthesize --help lists them')


def _convert(name: str, value: Any) -> Any:
    """Return an option as its field wants it; say which one does not fit."""
    require_known([name])
    if name in _NUMBERS:
        return _number(name, value)
    if name == "omega":
        return str(value)
    if name == "order":
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise ConfigError(f"order = {value!r}: must be a list of all attributes' names")
        return tuple(value)
    if name == "graph" and not _is_graph(value):
        raise ConfigError(f"graph = {value!r}: must give a list of parents' names by name")
    if name in {"omega_known", "accept_drafted_schema"} and not isinstance(value, bool):
        raise ConfigError(f"{name} = {value!r}: must be true or false")
    return value


def _number(name: str, value: Any) -> int | float:
    """Return a number as its field wants it."""
    kind = "whole number" if name in _WHOLE else "number"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{name} = {value!r}: must be a {kind}")
    try:
        real = float(value)
    except OverflowError:
        raise ConfigError(f"{name} = …: the number is too large") from None
    if name not in _WHOLE:
        return real
    if not real.is_integer():
        raise ConfigError(f"{name} = {value!r}: must be a {kind}")
    return int(value)


def _is_graph(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str)
        and isinstance(parents, list | tuple)
        and all(isinstance(parent, str) for parent in parents)
        for name, parents in value.items()
    )
