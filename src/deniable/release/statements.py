"""What a manifest states, asked again: its words, its parameters, its ledger, its numbers.

Nothing but the manifest is read, and the schema where there is one. Costs are those of
``privacy/audit.py``, which shares no code with the accountant that wrote them down.
"""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from deniable.privacy import sentences
from deniable.privacy.audit import (
    Use,
    entropy_steps,
    epsilon_of,
    losses_in,
    require,
    require_close,
    split_epsilon_of,
)
from deniable.privacy.composition import Guarantee
from deniable.privacy.plan import split_of
from deniable.privacy.sentences import neighbours_of, round_up, unit_of
from deniable.release.claims import (
    MOVED_SUMS,
    OF_COUNTS,
    OF_PAIRS,
    OF_RECORDS,
    OF_SQUARES,
    OF_SUMS,
    OF_VALUES,
    Claims,
)
from deniable.release.manifest import ACCOUNTANT, ASSUMPTIONS, FORMAT, not_covered, sealed
from deniable.release.questions import Check, check

WITH_ARTEFACT = ("one-shot", "seedless")
_MODES = (*WITH_ARTEFACT, "tested", "randomized")
_KEYS = ["format", "version", "mode", "profile", "data_use", "parameters", "guarantee", "spends"]
_KEYS += ["accountants", "not_covered", "files", "schema", "checksum"]
_CLAIM_KEYS = ("sentence", "epsilon", "delta", "unit", "neighbours", "assumptions")
# B of sums of values: what they are cut to.
_BOUNDS = {8, 16, 32, 64}
_VERSION = re.compile(r"\d+(\.\d+)+((a|b|rc|\.dev|\.post)\d+)*(\+[a-z0-9.]+)?")


def check_claims(claims: Claims) -> list[Check]:
    """Return the answers to all questions that a manifest, and its schema, can answer."""
    asked = [("manifest", _ask_form), ("sentence", _ask_sentence)]
    if not claims.nothing:
        asked.append(("parameters", _ask_parameters))
    if not (claims.nothing or claims.of_own_model):
        asked += [
            ("ledger", _ask_ledger),
            ("noise", _ask_noise),
            ("own costs", _ask_own_costs),
            ("total cost", _ask_total),
            ("limit", _ask_limit),
        ]
    return [check(name, lambda ask=ask: ask(claims)) for name, ask in asked]  # type: ignore[misc]


def _ask_form(claims: Claims) -> str:
    """Form, fixed words, and that the accountant's number is the one that is claimed."""
    document = claims.document
    claimed = document["guarantee"]
    require(list(document) == _KEYS and tuple(claimed) == _CLAIM_KEYS, "its fields are not ours")
    require(sealed(document) == document, "something in it was changed after it was written")
    require(document["format"] == FORMAT, f'it is not a "{FORMAT}"')
    require(_VERSION.fullmatch(document["version"]), "its version is no version")
    require(claims.mode in _MODES, "no such mode exists")
    require(claims.place == "release" or claims.mode in WITH_ARTEFACT, "the mode has no artefact")
    require(document["profile"] in ("default", "paper"), "no such profile exists")
    require(document["data_use"] in ("whole", "split"), "no such use of the data exists")
    claims_nothing = claims.cost.epsilon == math.inf and claims.cost.delta == 0
    require(not claims.of_own_model or claims_nothing, "a user's own model has no known cost")
    unit = claims.unit
    words = (unit_of(unit), neighbours_of(unit), not_covered(unit))
    said = (claimed["unit"], claimed["neighbours"], document["not_covered"])
    require(said == words, "unit, neighbours or what is not covered are not in our words")
    assumptions = [] if claims.nothing else list(ASSUMPTIONS)
    require(claimed["assumptions"] == assumptions, "the assumptions are not those of the claim")
    total = {"name": ACCOUNTANT, "epsilon": claimed["epsilon"], "delta": claimed["delta"]}
    require(document["accountants"] == [total], "the accountant's total is not what is claimed")
    return "Its fields, fixed words, assumptions and exclusions are those the product writes."


def _ask_sentence(claims: Claims) -> str:
    """The sentence, composed again from the numbers."""
    said = claims.document["guarantee"]["sentence"]
    if claims.nothing:
        reasons = (sentences.WITHOUT_NOISE, sentences.KNOWN_NOISE)
        require(said in [sentences.nothing_claimed(why=why) for why in reasons], "it claims more")
        return "It says that nothing is claimed."
    require(said == sentence_of(claims), "it does not say what the numbers say")
    return "Composed again from the numbers it is the same, word for word."


def sentence_of(claims: Claims) -> str:
    """Return what the product says of a release with these numbers."""
    parameters, cost = claims.parameters, claims.cost
    if claims.mode == "tested":
        one = len(parameters["omega"]) == 1
        hidden = claims.of_own_model or not (parameters["omega_known"] or one)
        said = sentences.tested(
            None if claims.of_own_model else cost,
            k=parameters["k"],
            gamma=parameters["gamma"] if hidden else None,
            one_omega=one,
        )
    elif claims.mode == "randomized":
        each = Guarantee(**claims.document["spends"][-1]["each"])
        said = sentences.randomized(cost, records=parameters["records"], each=each)
    elif claims.lengths:
        said = sentences.one_shot(cost, k=parameters["k"])
    else:
        said = sentences.seedless(cost)
    said += sentences.split(parameters["fractions"]) if "fractions" in parameters else ""
    return said + sentences.about_schema(
        unit=claims.unit,
        rows=claims.rows,
        k=None if claims.mode in ("seedless", "randomized") else parameters["k"],
        draft=claims.draft,
        drafted=claims.document["schema"]["drafted"],
    )


def _whole(low: int, high: int = 2**53) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _number(low: float, high: float = 2.0**53) -> Callable[[Any], bool]:
    return lambda value: type(value) is float and low <= value <= high


def _one_of(*choices: object) -> Callable[[Any], bool]:
    return lambda value: any(value is each or value == each for each in choices)


# Every parameter that a manifest can have, and what it may be.
_PARAMETERS: dict[str, Callable[[Any], bool]] = {
    "epsilon": _number(0.0),
    "delta": _number(0.0, 1.0),
    "omega": lambda omegas: all(map(_whole(1), omegas)) and bool(omegas),
    "max_cost": _whole(1),
    "estimator": _one_of("pairs", "back-off", "norm-sub", "clip"),
    "alpha": _number(2.0**-40),
    "parameters": _one_of("mean", "drawn"),
    "graph": _one_of("learnt", "given"),
    "rows_max": _whole(1),
    "k": _whole(1),
    "omega_known": lambda value: type(value) is bool,
    "threshold": _whole(1),
    "gamma": _number(1.0),
    "epsilon0": _number(0.0),
    "t": _whole(1),
    "dummies": _whole(1),
    "unit": lambda name: type(name) is str,
    "rows_per_unit": _whole(1),
    "draft": lambda cost: all(map(_number(0.0), cost.values())) and len(cost) == 2,
    "fractions": lambda shares: all(map(_number(0.0, 1.0), shares.values())),
    "paper_formula": lambda said: set(said) <= {"model", "records"},
    "records": _whole(1),
    "order": lambda names: len(set(names)) == len(names),
    "key": _whole(0, 2**128 - 1),
    "writer": lambda text: bool(re.fullmatch(r"polars \d+(\.\w+)+", text)),
}


def expected_parameters(claims: Claims) -> set[str]:
    """Return the names of the parameters that a manifest of this mode has."""
    own, mode, said = claims.of_own_model, claims.mode, claims.parameters
    sometimes = {
        "alpha": not claims.of_pairs,
        "parameters": not claims.of_pairs,
        "k": mode != "seedless",
        "omega_known": mode != "seedless",
        "threshold": claims.lengths > 0,
        "gamma": mode == "randomized" or (mode == "tested" and (own or not said["omega_known"])),
        "epsilon0": mode == "randomized",
        "t": mode == "randomized",
        "dummies": mode == "randomized",
        "fractions": claims.document["data_use"] == "split",
        "unit": claims.has_unit,
        "rows_per_unit": claims.has_unit,
        "draft": claims.has_draft,
        "paper_formula": claims.document["profile"] == "paper",
        "records": claims.place != "artefact",
        "order": mode not in WITH_ARTEFACT and not own,
        "key": mode in WITH_ARTEFACT and claims.place != "artefact",
        "writer": any(name.endswith(".parquet") for name in claims.document["files"]),
    }
    return {name for name in _PARAMETERS if sometimes.get(name, True)}


def _ask_parameters(claims: Claims) -> str:
    """Each is there, is what it may be, and agrees with the others."""
    said = claims.parameters
    expected = expected_parameters(claims)
    wrong = sorted(expected ^ set(said))
    require(not wrong, f'"{"".join(wrong[:1])}" is missing, or does not belong to this mode')
    for name, value in said.items():
        require(_PARAMETERS[name](value), f"{name} is not what it may be")
    m, omegas = len(claims.names), said["omega"]
    consecutive = omegas == list(range(omegas[0], omegas[-1] + 1))
    require(consecutive and omegas[-1] <= m, "omega is no range of numbers of attributes")
    require(claims.mode != "seedless" or omegas == [m], "a seedless release draws all attributes")
    if "fractions" in said:
        of_paper = claims.document["profile"] == "paper"
        known = split_of(seeds=claims.mode != "seedless", of_paper=of_paper)
        require(said["fractions"] == known, "the parts have other probabilities than ours")
    if claims.schema is not None and claims.has_unit:
        of_schema = (claims.schema.unit, claims.schema.max_rows_per_unit)
        require((claims.unit, claims.rows) == of_schema, "the unit is not that of the schema")
    if claims.schema is not None and claims.schema.draft is not None:
        bought = claims.schema.draft
        cost = {"epsilon": bought.epsilon, "delta": bought.delta}
        require(said["draft"] == cost, "the draft costs something else than the schema says")
    if "order" in said:
        require(sorted(said["order"]) == sorted(claims.names), "order names other attributes")
    if claims.mode == "randomized":
        require(said["gamma"] == 1 or not said["omega_known"], "a known ω has γ = 1")
    if "paper_formula" in said:
        near = abs(said["paper_formula"]["model"]["epsilon"] / said["epsilon"] - 1) < 1e-4
        require(near, "the paper's formula does not meet what was asked for")
    return f"All {len(said)} are what they may be, and agree with each other."


def _ask_ledger(claims: Claims) -> str:
    """Every use of the data that the mode makes of such a schema, and no other."""
    said, m = claims.parameters, len(claims.names)
    expected = _uses_of_model(claims)
    expected += [("seed prefixes", "seeds")] if claims.lengths else []
    expected += [("deniability tests", "seeds")] if claims.mode == "randomized" else []
    found = [(use.what, use.part) for use in claims.uses]
    odd = [what for what, _ in sorted(set(expected) ^ set(found))]
    require(not odd, f'"{"".join(odd[:1])}" is missing, or one too many')
    require(found == expected, "an entry is there twice, or out of order")
    every, counted = claims.pairs
    moved = {"entropies": _numbers_of_entropies(claims), "seed prefixes": {claims.lengths}}
    moved |= dict(zip(OF_PAIRS, ({every}, {counted}, {4 * counted}), strict=True))
    for name, model in _summed(claims):
        sums, squares = MOVED_SUMS[model]
        moved |= {f"{OF_SUMS}{name}": {sums}, f"{OF_SQUARES}{name}": {squares}}
    stated = {"deniability tests"}
    stated |= {"number of records"} if claims.document["profile"] == "paper" else set()
    for use in claims.uses:
        require(
            use.moved in moved.get(use.what, {1}), f"{use.what}: one record moves more, or less"
        )
        times = said["records"] if use.what == "deniability tests" else 1
        require(use.times == times, f"{use.what}: it was done another number of times")
        theorem = use.what in stated
        require((use.each is not None) == theorem, f"{use.what}: a cost is stated, or is not")
    return f"The {len(found)} uses of the data are those of this mode for {m} attributes."


def _uses_of_model(claims: Claims) -> list[tuple[str, str]]:
    """Return what learning a model of such attributes uses, and of which part, in order."""
    if claims.of_pairs:
        every, counted = claims.pairs
        uses = [(f"{OF_VALUES}{name}", "structure") for name in claims.names]
        stages = OF_PAIRS if counted < every else OF_PAIRS[1:]
        return uses + ([(what, "parameters") for what in stages] if counted else [])
    learnt = claims.parameters["graph"] == "learnt"
    uses = [("entropies", "structure"), ("number of records", "structure")] if learnt else []
    for name, model in zip(claims.names, claims.models, strict=True):
        summed = (OF_RECORDS, OF_SUMS, OF_SQUARES)
        kinds = (OF_COUNTS,) if model == "histogram" else summed
        uses += [(f"{kind}{name}", "parameters") for kind in kinds]
    return uses


def _summed(claims: Claims) -> list[tuple[str, str]]:
    """Return the attributes that were learnt by sums of their values, and how."""
    models = () if claims.of_pairs else zip(claims.names, claims.models, strict=True)
    return [(name, model) for name, model in models if model != "histogram"]


def _numbers_of_entropies(claims: Claims) -> set[int]:
    """Return m(m+1)/2 + b·m, for b bucketed attributes; without a schema, for every b."""
    m, schema = len(claims.names), claims.schema
    if schema is None:
        return {m * (m + 1) // 2 + b * m for b in range(m + 1)}
    return {m * (m + 1) // 2 + m * sum(attribute.is_bucketed for attribute in schema.attributes)}


def _ask_noise(claims: Claims) -> str:
    """The law of every use, its sensitivity, and the threshold that follows from it."""
    said, paper = claims.parameters, claims.document["profile"] == "paper"
    gaussian, laplace = "rounded_gaussian", "discrete_laplace"
    structure = {laplace} if paper else {gaussian}
    laws = {"entropies": structure, "number of records": structure}
    laws["seed prefixes"] = {"truncated_geometric", "truncated_discrete_gaussian"}
    laws["deniability tests"] = {laplace}
    # Where the noise is the paper's, 128 steps are its sensitivity: 65 are the most (Lemma 8).
    steps = {"entropies": {65} if paper else entropy_steps(said["rows_max"])}
    laws |= {use.what: {gaussian} for use in claims.uses if claims.of_pairs and use.part != "seeds"}
    counts = {(use.law, use.scale) for use in claims.uses if use.what.startswith(OF_COUNTS)}
    require(len(counts) <= 1, "the counts of some attributes have other noise than the rest")
    steps |= _steps_of_sums(claims)
    _require_shares_of_pairs(claims)
    for use in claims.uses:
        require(use.law in laws.get(use.what, {gaussian, laplace}), f"{use.what}: other noise")
        known = use.sensitivity in steps.get(use.what, {1})
        require(known, f"{use.what}: one record moves a number by more, or less")
        if use.what == "seed prefixes":
            require(said["threshold"] == said["k"] + use.r, "the threshold is not k + r")
        if use.what == "deniability tests":
            require(use.scale == (said["epsilon0"],), "the threshold's noise is not that of ε0")
    return "Every law, its sensitivity and the threshold are those that the theorems are about."


def _require_shares_of_pairs(claims: Claims) -> None:
    """Refuse pairs that share their budget otherwise: as μ², choosing a fifth, looks half the rest.

    What choosing cost stands in no artefact: without this, it could be said to have been less.
    """
    squares = {
        use.what: use.moved / use.scale[0] ** 2
        for use in claims.uses
        if use.what in OF_PAIRS and use.law != "exact"
    }
    if not squares:
        return
    choosing, first, again = (squares.get(what, 0.0) for what in OF_PAIRS)
    off = 1e-9 * math.fsum(squares.values())
    fifth = not choosing or abs(choosing - (first + again) / 4) <= off
    require(fifth and abs(first - again) <= off, "pairs share their budget in another way")


def _steps_of_sums(claims: Claims) -> dict[str, set[int]]:
    """Return by what one record moves sums: at most B and B², the B of its attribute.

    Each of the three kinds has a third of what a table of counts costs: μ² or ε.
    """
    uses = {use.what: use for use in claims.uses}
    steps: dict[str, set[int]] = {}
    costs = [_size(use) for use in claims.uses if use.what.startswith(OF_COUNTS)]
    for name, _ in _summed(claims):
        kinds = [uses[f"{kind}{name}"] for kind in (OF_RECORDS, OF_SUMS, OF_SQUARES)]
        bound = kinds[1].sensitivity
        steps |= {kinds[1].what: _BOUNDS, kinds[2].what: {bound * bound}}
        costs += [3 * _size(use) for use in kinds]
        require(len({use.law for use in kinds}) == 1, f"{name}: its sums have noise of two kinds")
    same = not costs or max(costs) <= min(costs) * (1 + 1e-9)
    require(same or not steps, "sums of some attributes have other noise than a third of a table's")
    return steps


def _size(use: Use) -> float:
    """Return what adds up over uses of one law: μ² of Gaussian noise, ε of Laplace noise."""
    if use.law == "rounded_gaussian":
        return float(use.moved * (use.sensitivity / use.scale[0]) ** 2)
    return float(use.moved * use.sensitivity * use.scale[0])


def _ask_own_costs(claims: Claims) -> str:
    """What each use costs by itself, at the δ asked for."""
    delta = claims.parameters["delta"]
    known: dict[Use, float] = {}
    for use in claims.uses:
        require(
            use.claimed[1] == round_up(delta), f"{use.what}: its own δ is not the one asked for"
        )
        kind = replace(use, what="", part="", claimed=(0.0, 0.0))
        if kind not in known:
            known[kind] = epsilon_of([use], delta=delta)
        what = f"{use.what} alone"
        require_close(use.claimed[0], known[kind], losses=losses_in([use]), what=what)
    return "Each use of the data costs, by itself, what it is said to cost."


def _ask_total(claims: Claims) -> str:
    """What all uses cost together, at the δ that is claimed."""
    cost, said, uses = claims.cost_of_row, claims.parameters, claims.uses
    if "fractions" in said:
        exact = split_epsilon_of(uses, said["fractions"], delta=cost.delta)
    else:
        exact = epsilon_of(uses, delta=cost.delta)
    tests = [use for use in uses if use.what == "deniability tests"]
    apart = exact
    if tests and "fractions" not in said:
        # A great many tests may have been added to the model's cost, not composed with it.
        model = [use for use in uses if use not in tests]
        apart = sum(epsilon_of(part, delta=cost.delta / 2) for part in (tests, model))
    require_close(cost.epsilon, exact, at_most=apart, losses=losses_in(uses), what="all together")
    return f"All together cost ε = {exact:.6g} at δ = {cost.delta:.6g}; {cost.epsilon:.6g} is said."


def _ask_limit(claims: Claims) -> str:
    """No more is claimed than was asked for, but in the paper's profile, whose formula errs."""
    said, cost = claims.parameters, claims.cost
    limit = math.inf if claims.document["profile"] == "paper" else said["epsilon"]
    require(cost.epsilon <= limit, "more ε is claimed than was asked for")
    require(0 < cost.delta <= round_up(said["delta"]), "more δ is claimed than was asked for")
    return f"ε = {said['epsilon']} and δ = {said['delta']} were asked for; no more is claimed."
