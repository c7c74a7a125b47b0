"""Check a manifest's form, sentence and parameters, from the manifest and its schema alone."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from deniable.privacy import wording
from deniable.privacy.composition import Guarantee
from deniable.privacy.plan import split_fractions
from deniable.privacy.wording import neighbouring_relation, protected_unit
from deniable.release.manifest import ACCOUNTANT, ASSUMPTIONS, FORMAT, add_checksum, not_covered
from deniable.schema.draft_cost import DraftCost
from deniable.verification.claims import Check, ManifestClaims, run_check
from deniable.verification.ledger_checks import run_ledger_checks
from deniable.verification.manifest_spend import require

ARTEFACT_MODES = ("one-shot", "seedless")
_MODES = (*ARTEFACT_MODES, "tested", "randomized")
_MANIFEST_KEYS = (
    *("format", "version", "mode", "profile", "data_use", "parameters", "guarantee", "spends"),
    *("accountants", "not_covered", "files", "schema", "checksum"),
)
_GUARANTEE_KEYS = ("sentence", "epsilon", "delta", "unit", "neighbours", "assumptions")


def run_manifest_checks(claims: ManifestClaims) -> list[Check]:
    """Run every check that needs only a manifest and its schema, ledger included."""
    checks = [
        run_check("manifest", lambda: _check_form(claims)),
        run_check("sentence", lambda: _check_sentence(claims)),
    ]
    if claims.claims_nothing:
        return checks
    checks.append(run_check("parameters", lambda: _check_parameters(claims)))
    return checks if claims.has_own_model else checks + run_ledger_checks(claims)


def _check_form(claims: ManifestClaims) -> str:
    """Check fields, checksum and fixed texts, and that the accountant's total is the claim."""
    document = claims.document
    claimed = document["guarantee"]
    ours = tuple(document) == _MANIFEST_KEYS and tuple(claimed) == _GUARANTEE_KEYS
    require(ours, "unexpected or missing fields")
    require(add_checksum(document) == document, "its checksum does not match its content")
    require(document["format"] == FORMAT, f'its format is not "{FORMAT}"')
    require(claims.mode in _MODES, "unknown mode")
    has_artefact = claims.mode in ARTEFACT_MODES
    require(claims.subject == "release" or has_artefact, "this mode has no artefact")
    require(document["profile"] in ("default", "paper"), "unknown profile")
    require(document["data_use"] in ("whole", "split"), "unknown data_use")
    claims_nothing = claims.cost.epsilon == math.inf and claims.cost.delta == 0
    require(not claims.has_own_model or claims_nothing, "a user's own model has no known cost")
    unit = claims.unit
    exclusions = not_covered(unit, document["mode"], given="given" in claims.parameters)
    expected = (protected_unit(unit), neighbouring_relation(unit), exclusions)
    found = (claimed["unit"], claimed["neighbours"], claims.document["not_covered"])
    require(found == expected, "unit, neighbours or not_covered have an unexpected text")
    assumptions = [] if claims.claims_nothing else list(ASSUMPTIONS)
    stated = claims.document["guarantee"]["assumptions"]
    require(stated == assumptions, "unexpected assumptions")
    total = {"name": ACCOUNTANT, "epsilon": claimed["epsilon"], "delta": claimed["delta"]}
    require(document["accountants"] == [total], "the accountant's total differs from the claim")
    return "Fields, fixed texts, assumptions and exclusions are correct."


def _check_sentence(claims: ManifestClaims) -> str:
    """Check that the guarantee sentence follows from the manifest's numbers."""
    sentence = claims.document["guarantee"]["sentence"]
    if claims.claims_nothing:
        reasons = (wording.WITHOUT_NOISE, wording.KNOWN_NOISE)
        known = [wording.no_claim(why=why) for why in reasons]
        require(sentence in known, "it claims a guarantee, but the manifest has none")
        return "The manifest claims no guarantee, and the sentence states that."
    require(sentence == compose_sentence(claims), "it does not match the manifest's numbers")
    found = "Composed again from the manifest's numbers, the sentence is identical."
    return f"{found} {compose_meaningless(claims)}".strip()


def compose_meaningless(claims: ManifestClaims) -> str:
    """Compose the sentence that δ promises nothing for the public number of rows; or "".

    That is the larger one of manifest and schema, so that no change of one takes the sentence away.
    A file of records comes without the schema: there the sentence itself may name more rows.
    """
    named = wording.rows_named(claims.document["guarantee"]["sentence"])
    stated = named if claims.schema is None else claims.schema.rows_max
    return wording.meaningless_claim(
        claims.cost.delta,
        rows=max(claims.parameters["rows_max"], stated),
        unit=claims.unit,
        of_model=claims.mode == "tested",
    )


def compose_sentence(claims: ManifestClaims) -> str:
    """Compose the guarantee sentence of a release from its manifest's numbers."""
    return compose_meaningless(claims) + _compose_claim(claims)


def _compose_claim(claims: ManifestClaims) -> str:
    parameters, cost = claims.parameters, claims.cost
    # Cells of completed rows are copied from given rows: nothing is claimed about k rows.
    is_given = "given" in parameters
    copies = not is_given and (claims.mode == "tested" or claims.copies_prefixes)
    if claims.mode == "tested":
        one = len(parameters["omega"]) == 1
        hidden = claims.has_own_model or not (parameters["omega_known"] or one)
        sentence = wording.tested_claim(
            None if claims.has_own_model else cost,
            k=parameters["k"],
            gamma=parameters["gamma"] if hidden else None,
            one_omega=one,
        )
    elif claims.mode == "randomized":
        each = Guarantee(**claims.document["spends"][-1]["each"])
        sentence = wording.randomized_claim(cost, records=parameters["records"], each=each)
    elif claims.has_seed_histogram:
        sentence = wording.one_shot_claim(
            cost, k=parameters["k"] if copies else None, private_draft="draft" in parameters
        )
    else:
        sentence = wording.seedless_claim(cost, private_draft="draft" in parameters)
    sentence += wording.split_claim(parameters["fractions"]) if "fractions" in parameters else ""
    sentence += wording.schema_claim(
        unit=claims.unit,
        rows=claims.rows_per_unit,
        k=parameters["k"] if copies else None,
        draft=claims.draft_cost,
        composed_draft=claims.composed_draft is not None,
        drafted=claims.document["schema"]["drafted"],
        row_draws="row_draws" in parameters,
    )
    if is_given:
        return wording.without_prefix_claim(sentence, 1) + wording.given_claim()
    is_conditional = "where" in parameters or "balance" in parameters
    return sentence + (wording.condition_claim() if is_conditional else "")


def _is_integer(low: int, high: int = 2**53) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _is_real(low: float, high: float = 2.0**53) -> Callable[[Any], bool]:
    return lambda value: type(value) is float and low <= value <= high


def _is_one_of(*choices: object) -> Callable[[Any], bool]:
    return lambda value: any(value is each or value == each for each in choices)


def _is_cost(value: Any) -> bool:
    return list(value) == ["epsilon", "delta"] and all(map(_is_real(0.0), value.values()))


def _is_draft(facts: Any) -> bool:
    """Whether these are the cost of a private draft, and the noise that a run is composed with."""
    names = ["epsilon", "delta"]
    if list(facts) != names:
        names += ["mu", "columns", "text_delta"]
        if list(facts) != names or not _is_integer(1, 10**6)(facts["columns"]):
            return False
    return all(map(_is_real(0.0), (facts[name] for name in names if name != "columns")))


def _are_shares(shares: Any) -> bool:
    return all(map(_is_real(0.0, 1.0), shares)) and abs(sum(shares) - 1) < 1e-6


def _is_given(facts: Any) -> bool:
    """Whether these are facts about given rows: columns, and their number if they are public."""
    public = facts["public"]
    expected = ["columns", "public", "records_each"]
    expected += ["rows"] if public else []
    numbers = [facts["records_each"], *([facts["rows"]] if public else [])]
    names = facts["columns"]
    return (
        list(facts) == expected
        and type(public) is bool
        and all(map(_is_integer(1), numbers))
        and 0 < len(set(names)) == len(names)
    )


def _is_inference(facts: Any) -> bool:
    more = ["cuts_constrained_bins"] if "cuts_constrained_bins" in facts else []
    if more and facts["cuts_constrained_bins"] is not True:
        return False
    if facts["method"] in ("exact", "nearly exact"):
        nearly = facts["method"] == "nearly exact"
        return list(facts) == ["method", *more] and nearly == bool(more)
    known = list(facts) == ["method", "total_variation", *more]
    known = known and facts["method"] == "selected states"
    return known and _is_real(0.0, 1.0)(facts["total_variation"])


# Every parameter that a manifest can have, with a predicate for valid values.
_PARAMETER_RULES: dict[str, Callable[[Any], bool]] = {
    "epsilon": _is_real(0.0),
    "delta": _is_real(0.0, 1.0),
    "omega": lambda omegas: all(map(_is_integer(1), omegas)) and bool(omegas),
    "omega_requested": _is_one_of("auto", "given"),
    "max_cost": _is_integer(1),
    "estimator": _is_one_of("pairs", "norm-sub", "clip"),
    "alpha": _is_real(2.0**-40),
    "parameters": _is_one_of("mean", "drawn"),
    "graph": _is_one_of("learnt", "given"),
    "rows_max": _is_integer(1),
    "header": lambda value: value is False,
    "target": lambda names: type(names) is list and 0 < len(set(names)) == len(names),
    "k": _is_integer(1),
    "omega_known": lambda value: type(value) is bool,
    "threshold": _is_integer(1),
    "copies_prefixes": lambda value: type(value) is bool,
    "gamma": _is_real(1.0),
    "epsilon0": _is_real(0.0),
    "t": _is_integer(1),
    "dummies": _is_integer(1),
    "unit": lambda name: type(name) is str,
    "rows_per_unit": _is_integer(1),
    "row_draws": _is_one_of(wording.ROW_DRAWS),
    "draft": _is_draft,
    "fractions": lambda shares: all(map(_is_real(0.0, 1.0), shares.values())),
    "paper_formula": lambda costs: all(map(_is_cost, costs.values())),
    "records": _is_integer(1),
    "order": lambda names: len(set(names)) == len(names),
    "key": _is_integer(0, 2**128 - 1),
    "where": lambda text: type(text) is str and bool(text),
    "balance": lambda shares: len(shares) == 1 and all(map(_are_shares, shares.values())),
    "given": _is_given,
    "inference": _is_inference,
    "writer": lambda text: bool(re.fullmatch(r"polars \d{1,4}(\.\d{1,4}){1,3}(\w{1,8})?", text)),
}


def expected_parameters(claims: ManifestClaims) -> set[str]:
    """List the names of the parameters that a manifest of this mode has."""
    own, mode, parameters = claims.has_own_model, claims.mode, claims.parameters
    hidden = mode == "tested" and (own or not parameters["omega_known"])
    conditions = {
        "omega_requested": mode != "seedless",
        "header": "header" in parameters if claims.schema is None else not claims.schema.header,
        "target": claims.is_pairwise and "target" in parameters,
        "alpha": not claims.is_pairwise,
        "parameters": not claims.is_pairwise,
        "k": mode != "seedless",
        "omega_known": mode != "seedless",
        "threshold": claims.has_seed_histogram,
        "copies_prefixes": claims.has_seed_histogram,
        "gamma": mode == "randomized" or hidden,
        "epsilon0": mode == "randomized",
        "t": mode == "randomized",
        "dummies": mode == "randomized",
        "fractions": claims.document["data_use"] == "split",
        "unit": claims.has_unit,
        "rows_per_unit": claims.has_unit,
        "row_draws": "row_draws" in parameters
        and (claims.has_unit or claims.document["data_use"] == "split"),
        "draft": claims.has_draft,
        "paper_formula": claims.document["profile"] == "paper",
        "records": claims.subject != "artefact",
        "order": mode not in ARTEFACT_MODES and not own,
        "key": mode in ARTEFACT_MODES and claims.subject != "artefact",
        # Records of an artefact may be drawn given a condition, shares, or rows.
        "where": claims.subject == "file" and "where" in parameters,
        "balance": claims.subject == "file" and "balance" in parameters,
        "given": claims.subject == "file" and "given" in parameters,
        "inference": any(name in parameters for name in ("where", "balance", "given")),
        "writer": any(
            name.removesuffix(".internal").endswith(".parquet") for name in claims.document["files"]
        ),
    }
    return {name for name in _PARAMETER_RULES if conditions.get(name, True)}


def _require_schema_draft(claims: ManifestClaims, draft: DraftCost) -> None:
    """Require the schema's cost of the draft, and its noise where the total composes it."""
    parameters = claims.parameters
    may_compose = claims.is_pairwise and claims.mode != "randomized" and not claims.has_own_model
    noise = draft.noise if may_compose and claims.composed_draft is not None else None
    same = parameters["draft"] == replace(draft, noise=noise).stated
    require(same, "the cost of the draft differs from the schema")


def _check_parameters(claims: ManifestClaims) -> str:
    """Check that every expected parameter is there, valid, and consistent with the others."""
    parameters = claims.parameters
    wrong = sorted(expected_parameters(claims) ^ set(parameters))
    require(not wrong, f'"{"".join(wrong[:1])}" is missing, or does not belong to this mode')
    for name, value in parameters.items():
        require(_PARAMETER_RULES[name](value), f"invalid {name}")
    m, omegas = len(claims.names), parameters["omega"]
    unknown = set(parameters.get("target", ())) - set(claims.names)
    require(not unknown, "target names an unknown column")
    consecutive = omegas == list(range(omegas[0], omegas[-1] + 1))
    require(consecutive and omegas[-1] <= m, f"omega is not a range within 1 to {m}")
    require(claims.mode != "seedless" or omegas == [m], f"seedless mode needs omega = {m}")
    single = claims.mode == "one-shot" or parameters.get("omega_requested") == "auto"
    require(not single or len(omegas) == 1, "omega must be a single number")
    if "fractions" in parameters:
        require(not claims.is_pairwise, "a data split needs one of the paper's estimators")
        of_paper = claims.document["profile"] == "paper"
        known = split_fractions(seeds=claims.mode != "seedless", of_paper=of_paper)
        require(parameters["fractions"] == known, "unexpected fractions of the data split")
    if claims.schema is not None and claims.has_unit:
        of_schema = (claims.schema.unit, claims.schema.max_rows_per_unit)
        same = (claims.unit, claims.rows_per_unit) == of_schema
        require(same, "unit or rows_per_unit differ from the schema")
    if claims.schema is not None and claims.schema.draft is not None:
        _require_schema_draft(claims, claims.schema.draft)
    if "order" in parameters:
        same = sorted(parameters["order"]) == sorted(claims.names)
        require(same, "order does not name the attributes")
    if claims.mode == "randomized":
        require(parameters["gamma"] == 1 or not parameters["omega_known"], "a known ω needs γ = 1")
    if "paper_formula" in parameters:
        parts = ["model", "records"] if claims.mode == "randomized" else ["model"]
        same = list(parameters["paper_formula"]) == parts
        require(same, "paper_formula has unexpected parts")
        by_formula = parameters["paper_formula"]["model"]["epsilon"]
        near = abs(by_formula / parameters["epsilon"] - 1) < 1e-4
        require(near, "ε by the paper's formula differs from the requested ε")
    return f"All {len(parameters)} parameters are valid and consistent."
