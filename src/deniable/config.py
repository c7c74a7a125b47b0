"""Config: the options of a run, each described once, in the metadata of its field.

Flags, configuration keys, ``--help``, docs/options.md and error messages are made from it. Options
come from flags, then a configuration file, then the profile, then the defaults.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, get_type_hints

from deniable.errors import ConfigError
from deniable.files import parse_toml, require_regular_file
from deniable.option import Option, option_field, without_none
from deniable.privacy.wording import LARGE_DELTA

Mode = Literal["one-shot", "seedless", "tested", "randomized"]
DataUse = Literal["whole", "split"]
Profile = Literal["default", "paper"]
Parameters = Literal["mean", "drawn"]
EngineName = Literal["local", "spark"]
Estimator = Literal["pairs", "norm-sub", "clip"]

# The default of ``max_cost``: for the pairwise model, and for the tables of a graph.
MAX_COST_PAIRS = 12_000
MAX_COST_GRAPH = 300
_MAX_INTEGER = 2**53

# Keys of a configuration file that are no options: what the command line reads and writes.
PLACE_KEYS: Mapping[str, type] = {"schema": str, "out": str, "records": int}

# The paper's choices (Sec. 6.1); ours where it is silent.
_PROFILES: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "mode": "randomized",
        "data_use": "split",
        "k": 50,
        "gamma": 4.0,
        "epsilon0": 1.0,
        "omega": "5-11",
        "max_cost": MAX_COST_GRAPH,
        "estimator": "clip",
        "alpha": 1.0,
    },
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """The options of a run, checked one by one and together. The schema is checked later.

    ``options()`` lists them with their descriptions.
    """

    epsilon: float = option_field(
        1.0,
        "ε of the whole release (tested: of its model); inf: no noise, no guarantee.",
        "Common",
        bounds=(0, math.inf),
    )
    mode: Mode | None = option_field(
        None,
        "one-shot, seedless (one cost for any number of records), tested, randomized (the paper).",
        "Common",
        default_label="one-shot",
    )
    profile: Profile = option_field("default", "Preset of options: default, or paper.", "Common")
    delta: float = option_field(
        1e-9, "δ of the whole release (tested: of its model).", "Privacy", bounds=(0, 1)
    )
    k: int = option_field(
        50,
        "Least number of rows behind every copied combination of values.",
        "Privacy",
        bounds=(1, _MAX_INTEGER),
        applies_to="one-shot, tested, randomized",
    )
    omega: str = option_field(
        "auto",
        "Number ω of drawn attributes, the rest are copied: 9 or auto; 9-11 if tested.",
        "Privacy",
        applies_to="one-shot, tested, randomized",
    )
    data_use: DataUse = option_field(
        "whole",
        "whole: every row serves every stage; split: one stage (norm-sub, clip).",
        "Privacy",
    )
    rows_max: int | None = option_field(
        None,
        "Public guess of the number of rows; steers noise, never the guarantee.",
        "Privacy",
        default_label="the schema's",
        bounds=(1, _MAX_INTEGER),
    )
    accept_drafted_schema: bool = option_field(
        False, "Use schema entries that were read off the table and are not confirmed.", "Privacy"
    )
    accept_large_delta: bool = option_field(
        False, f"Use a δ above {LARGE_DELTA:g}, under which whole rows may be published.", "Privacy"
    )
    estimator: Estimator | None = option_field(
        None,
        "pairs, or the paper's network by norm-sub or clip.",
        "Model",
        default_label="pairs; norm-sub where a graph is given",
    )
    max_cost: int | None = option_field(
        None,
        "Largest number of parent configurations of an attribute.",
        "Model",
        default_label=f"{MAX_COST_PAIRS:,}; {MAX_COST_GRAPH} for the tables of a graph",
        bounds=(1, 2**31),
        has_flag=False,
    )
    alpha: float = option_field(
        1.0,
        "Prior count of every value in the tables of a graph.",
        "Model",
        bounds=(2.0**-40, _MAX_INTEGER),
        applies_to="norm-sub, clip",
        has_flag=False,
    )
    parameters: Parameters = option_field(
        "mean",
        "Posterior mean of each table of a graph, or one draw from the posterior.",
        "Model",
        applies_to="norm-sub, clip",
        has_flag=False,
    )
    graph: Mapping[str, list[str]] | None = option_field(
        None,
        "Parents of each attribute, by name; must be public.",
        "Model",
        default_label="learnt",
        applies_to="norm-sub, clip",
        has_flag=False,
    )
    order: tuple[str, ...] | None = option_field(
        None,
        "All attributes in the order they are drawn, parents first; must be public.",
        "Model",
        default_label="chosen from noisy values",
        applies_to="norm-sub, clip",
        has_flag=False,
    )
    target: tuple[str, ...] | None = option_field(
        None,
        "Column that matters most: its pairs get half the noise. May be repeated.",
        "Model",
        default_label="the schema's",
        applies_to="pairs",
    )
    omega_known: bool = option_field(
        True,
        "Whether each candidate is tested under its own ω (yes), or with ω hidden (no).",
        "The paper's modes",
        default_label="yes",
        applies_to="tested, randomized",
        has_flag=False,
    )
    gamma: float = option_field(
        4.0,
        "Width γ of the ranges of probabilities, for a hidden ω or your own model.",
        "The paper's modes",
        bounds=(1, _MAX_INTEGER),
        applies_to="tested, randomized",
        has_flag=False,
    )
    epsilon0: float | None = option_field(
        None,
        "ε0 of the noisy threshold of Privacy Test 2.",
        "The paper's modes",
        default_label="optimized",
        bounds=(0, _MAX_INTEGER),
        applies_to="randomized",
        has_flag=False,
    )
    t: int | None = option_field(
        None,
        "Parameter t of the proof of Theorem 1: a larger t lowers ε and raises δ.",
        "The paper's modes",
        default_label="optimized",
        bounds=(1, _MAX_INTEGER),
        applies_to="randomized",
        has_flag=False,
    )
    max_plausible: int | None = option_field(
        None,
        "Plausible seeds at which a scan stops counting.",
        "The paper's modes",
        default_label="no limit",
        bounds=(1, _MAX_INTEGER),
        applies_to="your own model",
        has_flag=False,
    )
    max_check_plausible: int | None = option_field(
        None,
        "Largest number of seeds that a scan reads.",
        "The paper's modes",
        default_label="all",
        bounds=(1, _MAX_INTEGER),
        applies_to="your own model",
        has_flag=False,
    )
    workers: int | None = option_field(
        None, "Number of threads.", "Execution", default_label="one for each core", bounds=(1, 1024)
    )
    engine: EngineName = option_field(
        "local", "local: count rows on this machine; spark: on a cluster.", "Execution"
    )
    master: str | None = option_field(
        None,
        "Spark cluster: spark://HOST:7077, yarn or sc://HOST.",
        "Execution",
        default_label="none",
        applies_to="engine spark",
    )
    accept_open_cluster: bool = option_field(
        False,
        "Use a Spark session without encryption, or with a UI or an event log.",
        "Execution",
        applies_to="engine spark",
    )

    def __post_init__(self) -> None:
        for option in options().values():
            option.require_allowed(getattr(self, option.name))
        if self.epsilon == 0:
            raise ConfigError("epsilon = 0: nothing can be learnt; use more than zero, or inf")
        if self.delta >= 1:
            raise ConfigError(f"delta = {self.delta}: guarantees nothing; 1e-9 is common")
        if self.epsilon < math.inf:
            require_small_delta("delta", self.delta, accepted=self.accept_large_delta)
        if self.epsilon0 == 0:
            raise ConfigError("epsilon0 = 0: no test passes; use more than zero, or leave it out")
        if self.gamma <= 1:
            raise ConfigError(f"gamma = {self.gamma}: ranges of probabilities need more than 1")
        parse_omega(self.omega)
        self._require_estimator()

    def _require_estimator(self) -> None:
        """Refuse an estimator that contradicts other options."""
        given = self.graph is not None or self.order is not None
        if self.estimator == "pairs" and given:
            raise ConfigError(
                "estimator = pairs finds its own graph and order; use norm-sub with given ones"
            )
        if self.estimator == "pairs" and self.profile == "paper":
            raise ConfigError("the paper counts a graph's tables, not pairs; use clip or norm-sub")

    @property
    def chosen_estimator(self) -> Estimator:
        """The estimator, with the default resolved."""
        if self.estimator is not None:
            return self.estimator
        return "pairs" if self.graph is None and self.order is None else "norm-sub"

    @property
    def uses_pairs(self) -> bool:
        """Whether the model is the pairwise one, not the tables of a graph."""
        return self.chosen_estimator == "pairs"

    @property
    def max_configurations(self) -> int:
        """The largest number of parent configurations, with the default resolved."""
        return self.max_cost or (MAX_COST_PAIRS if self.uses_pairs else MAX_COST_GRAPH)

    @classmethod
    def assemble(cls, given: Mapping[str, Any], file: str | Path | None = None) -> Self:
        """Combine options: those given, then the file's, then the profile's, then the defaults.

        Args:
            given: Options by name; None means not given.
            file: A TOML file with options by name.
        """
        flags = {name: value for name, value in given.items() if value is not None}
        written = read_options(file) if file is not None else {}
        chosen = written | flags
        require_known({**written, **given})  # also a misspelt name whose value is None
        profile = chosen.get("profile", "default")
        options()["profile"].require_allowed(profile)
        preset = dict(_PROFILES[profile])
        if chosen.get("mode") == "seedless":
            preset.pop("omega", None)  # it selects what is kept of seeds, and there are none
        combined = {**preset, **chosen}
        return cls(**{name: options()[name].convert(value) for name, value in combined.items()})


class MoreOptions(TypedDict, total=False):
    """The keywords of ``dn.learn``, ``dn.synthesize``, ``dn.plan`` and ``dn.Synthesizer``.

    Their signatures name ``epsilon``, ``delta`` and ``k`` themselves.
    """

    mode: Mode
    profile: Profile
    omega: str | int
    data_use: DataUse
    rows_max: int
    accept_drafted_schema: bool
    accept_large_delta: bool
    estimator: Estimator
    max_cost: int
    alpha: float
    parameters: Parameters
    graph: Mapping[str, list[str]]
    order: list[str] | tuple[str, ...]
    target: list[str] | tuple[str, ...]
    omega_known: bool
    gamma: float
    epsilon0: float
    t: int
    max_plausible: int
    max_check_plausible: int
    workers: int
    engine: EngineName
    master: str
    accept_open_cluster: bool


class Options(MoreOptions, total=False):
    """All options by name."""

    epsilon: float
    delta: float
    k: int


@cache
def options() -> dict[str, Option]:
    """All options by name, in the order of ``Config``."""
    hints = get_type_hints(Config)
    return {
        each.name: Option(
            name=each.name,
            kind=without_none(hints[each.name]),
            default=each.default,
            **each.metadata,
        )
        for each in fields(Config)
    }


def require_small_delta(name: str, delta: float, *, accepted: bool) -> None:
    """Refuse a δ that allows to publish whole rows, unless it was accepted."""
    if delta > LARGE_DELTA and not accepted:
        raise ConfigError(
            f"{name} = {delta:g} is above {LARGE_DELTA:g}: publishing each row unchanged with that "
            "probability would satisfy it. Use a value far below 1 / (number of rows), such as "
            "1e-9; or, if you must, pass --accept-large-delta (in Python, accept_large_delta=True)"
        )


def parse_omega(text: str) -> tuple[int, ...] | None:
    """Parse ω, ascending; None for "auto".

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
    """Read the options of a configuration file; dashes in names become underscores."""
    return {name: value for name, value in _read_keys(path).items() if name not in PLACE_KEYS}


def read_place(path: str | Path) -> dict[str, str]:
    """Read what a command takes from a configuration file besides options: paths and a number.

    Paths are relative to the folder of the file.
    """
    found: dict[str, str] = {}
    for name, value in _read_keys(path).items():
        if name in PLACE_KEYS:
            kind = PLACE_KEYS[name]
            if type(value) is not kind:
                what = "a path, as text" if kind is str else "a whole number"
                raise ConfigError(f"{path}: {name} must be {what}")
            found[name] = str(Path(path).parent / str(value) if kind is str else value)
    return found


def _read_keys(path: str | Path) -> dict[str, Any]:
    absent = "cannot be read (there is no such file); check --config"
    require_regular_file(Path(path), ConfigError, absent=absent)
    try:
        text = Path(path).read_text(encoding="utf-8")
        return {name.replace("-", "_"): value for name, value in parse_toml(text).items()}
    except OSError as fault:
        raise ConfigError(f"{path}: cannot be read ({fault.strerror}); check --config") from None
    except ValueError as fault:
        raise ConfigError(f"{path}: not a TOML file ({fault}); see docs/options.md") from None


def require_known(names: Iterable[str]) -> None:
    """Refuse a name that is not an option."""
    for name in names:
        if name not in options():
            raise ConfigError(f'there is no option "{name}"; docs/options.md lists them')
