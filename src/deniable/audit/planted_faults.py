"""Faults that an audit must find, planted on purpose: ``deniable audit --mechanism --plant``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

from deniable.arrays import Counts, HalfWords, Reals, Words
from deniable.errors import ConfigError
from deniable.pipeline.run_plan import RunPlan
from deniable.privacy import noise_laws
from deniable.privacy.noise_laws import Law, rounded_gaussian
from deniable.privacy.pairwise_budget import gaussian_sigma
from deniable.privacy.plan import Plan
from deniable.randomness import Keyed, Randomness, Rng, Stage
from deniable.release.artefact import Artefact

Fault = Literal["half-noise", "fixed-seed", "shared-noise", "row-count"]
FAULT_WORDS: Mapping[Fault, str] = {
    "half-noise": "all noise has half of the standard deviation that is charged",
    "fixed-seed": "the noise of every run comes from one fixed seed",
    "shared-noise": "all tables of a run get the same noise",
    "row-count": "the manifest has the exact number of rows",
}
_FIXED_KEY = 15


def parse_fault(text: str | None) -> Fault | None:
    """Check the name of a fault."""
    if text is None:
        return None
    for fault in FAULT_WORDS:
        if text == fault:
            return fault
    raise ConfigError(f"--plant {text}: the faults are {', '.join(FAULT_WORDS)}")


def planted_randomness(fault: Fault | None, noise: Randomness) -> Randomness:
    """The source of noise of one run, with a faulty one where that is the fault."""
    if fault == "fixed-seed":
        return Keyed(_FIXED_KEY)
    if fault == "shared-noise":
        return SharedNoise(Keyed.derived(noise.at("noise")))
    return noise


@dataclass(frozen=True)
class SharedNoise:
    """Randomness whose every draw begins with the same words: a planted fault."""

    source: Keyed
    is_secret: ClassVar[bool] = True

    def at(self, stage: Stage, block: int = 0) -> Rng:  # noqa: ARG002 - one stream serves all
        """Open the stream, which starts again with every draw."""
        return _RepeatedRng(self.source)


@dataclass(frozen=True)
class _RepeatedRng:
    source: Keyed

    def words(self, size: int) -> Words:
        return self.source.at("noise").words(size)

    def half_words(self, size: int) -> HalfWords:
        return self.source.at("noise").half_words(size)

    def random(self, size: int) -> Reals:
        return self.source.at("noise").random(size)

    def integers(self, high: int, size: int) -> Counts:
        return self.source.at("noise").integers(high, size)


def planted_plan(fault: Fault | None, plan: RunPlan) -> RunPlan:
    """The plan of a run whose noise has half of its scale; other faults leave it as it is."""
    if fault != "half-noise":
        return plan
    return replace(plan, privacy=_with_half_noise(plan.privacy))


def _with_half_noise(plan: Plan) -> Plan:
    pairs = plan.pairs
    if pairs is not None:
        pairs = replace(
            pairs,
            values=tuple(map(_halved, pairs.values)),
            interactions=_halved(pairs.interactions),
            tables=_halved(pairs.tables),
            three_way=_halved(pairs.three_way),
        )
    return replace(
        plan,
        pairs=pairs,
        entropy=_halved(plan.entropy),
        records=_halved(plan.records),
        counts=_halved(plan.counts),
        seeds=None if plan.seeds is None else _halved(plan.seeds),
        spends=tuple(
            spend if spend.each is not None else replace(spend, law=_halved(spend.law))
            for spend in plan.spends
        ),
    )


@lru_cache(maxsize=64)  # a law has a table, which takes longer to make than a run
def _halved(law: Law) -> Law:
    """The same kind of law with half of the scale; bounded noise keeps its bound."""
    known = dict(law.parameters)
    if law.name == "rounded_gaussian":
        return rounded_gaussian(gaussian_sigma(law) / 2)
    if law.name == "discrete_laplace":
        return noise_laws.discrete_laplace(2 * known["epsilon"])
    if law.name == "truncated_geometric":
        return noise_laws.truncated_geometric(2 * known["epsilon"], int(known["r"]))
    return law


def planted_artefact(fault: Fault | None, artefact: Artefact, rows: int) -> Artefact:
    """The artefact with a number of rows that it must not have."""
    if fault != "row-count":
        return artefact
    certificate = artefact.certificate
    parameters = {**certificate.parameters, "rows": rows}
    return replace(artefact, certificate=replace(certificate, parameters=parameters))
