"""Planted faults: each breaks the promise in one line of the source, and turns a named test red.

The source is copied, one line of the copy is changed, and the named test is run against it. A fault
whose line is no longer there fails too: the list must follow the code.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
# A process that forks has no threads, of no library.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# Replays of noisy answers on another table: what a fault of post-processing turns red.
REPLAY = "test_replay.py"
# Stages that must draw from the randomness of the run: what a known key turns red.
STAGES = "test_secret_stages.py"
# The cost of the default model's stages, and what they count.
BUDGET = "privacy/test_pairwise_budget.py"
MEASURE = "model/pairwise/test_measure.py"
# Which rows a stage counts, shown without noise.
API = "pipeline/test_api.py"


@dataclass(frozen=True)
class Fault:
    """A line of the source, what becomes of it, and the test that must notice."""

    name: str
    file: str
    line: str
    becomes: str
    noticed_by: str


FAULTS = [
    Fault(
        "the sensitivity of entropies is halved",
        "privacy/entropy_scale.py",
        "return 2 * int(np.ceil(",
        "return int(np.ceil(",
        "privacy/test_end_to_end.py::"
        "test_under_the_same_noise_neighbours_move_entropies_by_what_is_charged",
    ),
    Fault(
        "the threshold is one too low",
        "release/seed_histogram.py",
        "is_kept = noisy >= k + law.radius",
        "is_kept = noisy >= k + law.radius - 1",
        "release/test_seed_histogram.py::test_the_kept_prefixes_are_those_of_dense_noise",
    ),
    Fault(
        "one draw of noise serves all cells",
        "privacy/noise.py",
        "law.table.draw(rng, counts.shape)",
        "law.table.draw(rng, 1)[0]",
        "privacy/test_noise.py::test_every_cell_has_noise_of_its_own",
    ),
    Fault(
        "one draw of noise serves all triples of one shape",
        "privacy/noise.py",
        "law.table.draw(rng, counts.shape)",
        "np.resize(law.table.draw(rng, counts.shape)[: 12 if what == 'triples' else None], "
        "counts.shape)",
        "model/pairwise/test_measure_three_way.py::"
        "test_three_way_interactions_have_the_noise_that_is_paid_for",
    ),
    Fault(
        "noise is kept, and serves all counts of one law and shape",
        "privacy/noise.py",
        "law.table.draw(rng, counts.shape)",
        "add_noise.__dict__.setdefault((law, counts.shape), law.table.draw(rng, counts.shape))",
        "privacy/test_noise.py::test_no_two_cells_share_their_noise",
    ),
    Fault(
        "one noisy threshold serves a block of candidates",
        "release/deniability_test.py",
        "k + law.table.draw(rng, len(plausible))",
        "k + law.table.draw(rng, 1)[0]",
        "release/test_deniability_test.py::test_every_candidate_gets_independent_noise",
    ),
    Fault(
        "prefixes that pass are drawn alike, however many seeds they have",
        "counting/prefix_counts.py",
        "np.cumsum(self.shared)",
        "np.cumsum(np.minimum(self.shared, 1))",
        "release/test_seed_mechanism.py::test_records_are_released_with_the_probabilities_of_mechanism_1",
    ),
    Fault(
        "a spend is undercounted in the plan",
        "privacy/plan.py",
        "l0_sensitivity=facts.queries,",
        "l0_sensitivity=1,",
        "pipeline/test_api.py::test_every_way_to_estimate_gives_records",
    ),
    Fault(
        "two-way tables are undercounted in the plan",
        "privacy/pairwise_budget.py",
        'part="parameters", law=law, l0_sensitivity=count)',
        'part="parameters", law=law, l0_sensitivity=1)',
        f"{BUDGET}::test_the_squares_of_all_uses_add_up_to_those_of_their_stage",
    ),
    Fault(
        "two-way tables have half of the noise they are charged for",
        "model/pairwise/measure.py",
        "    parts = np.split(noisy, ",
        "    noisy = (noisy + flat) // 2\n    parts = np.split(noisy, ",
        "model/pairwise/test_measure.py::"
        "test_every_count_of_values_and_tables_has_the_noise_that_is_paid_for",
    ),
    Fault(
        "the noise of interactions is forgotten",
        "model/pairwise/measure.py",
        "            noisy[pair] = part.reshape(table.shape)",
        "            noisy[pair] = table",
        "model/pairwise/test_measure.py::test_interactions_have_the_noise_that_is_paid_for",
    ),
    Fault(
        "one draw of noise serves all two-way tables of a pair",
        "model/pairwise/measure.py",
        "np.sum(noisy[end - n : end], axis=0)",
        "n * noisy[end - 1]",
        "model/pairwise/test_measure.py::test_every_two_way_table_has_independent_noise",
    ),
    Fault(
        "interactions count a record twice",
        "model/pairwise/measure.py",
        "        scaled = scaled_interactions(counted.dense())",
        "        scaled = 2 * scaled_interactions(counted.dense())",
        "model/pairwise/test_measure.py::"
        "test_one_record_moves_no_number_further_than_it_is_charged_for",
    ),
    Fault(
        "the noise of interactions is not scaled by the number of cells",
        "model/pairwise/measure.py",
        "rounded_gaussian(cells * sigma)",
        "rounded_gaussian(sigma)",
        "model/pairwise/test_measure.py::test_interactions_have_the_noise_that_is_paid_for",
    ),
    Fault(
        "every pair costs as if it were the only one",
        "privacy/pairwise_budget.py",
        "    return [upper_bound(math.sqrt(total / weight) / mu) for weight in weights]",
        "    return [upper_bound(math.sqrt(cost) / mu) for cost in costs]",
        "privacy/test_pairwise_budget.py::"
        "test_the_squared_costs_of_all_pairs_are_those_of_the_stated_entry",
    ),
    Fault(
        "the sensitivity of interactions is too small by half",
        "privacy/pairwise_budget.py",
        "math.prod(1 - 1 / groups for groups in shape)",
        "math.prod(1 - 1 / groups for groups in shape) / 2",
        f"{BUDGET}::test_the_squared_costs_of_all_pairs_are_those_of_the_stated_entry",
    ),
    Fault(
        "pairs with a target have half of the σ that is charged",
        "privacy/pairwise_budget.py",
        "upper_bound(math.sqrt(total / weight) / mu)",
        "upper_bound(math.sqrt(total / weight) / mu / (1 if weight == 1 else 2))",
        f"{BUDGET}::test_the_squared_costs_of_all_pairs_are_those_of_the_stated_entry",
    ),
    Fault(
        "the weight of targets is not charged",
        "privacy/pairwise_budget.py",
        "math.fsum(w * c for w, c in zip(weights, costs, strict=True))",
        "math.fsum(costs)",
        f"{MEASURE}::test_one_record_moves_no_number_further_than_it_is_charged_for[targets1]",
    ),
    Fault(
        "the stated entry does not bound the table errors of interactions",
        "privacy/pairwise_budget.py",
        "_MIN_STATED_SIGMA = 12.0",
        "_MIN_STATED_SIGMA = 0.1",
        f"{BUDGET}::test_the_stated_entry_bounds_the_table_errors_of_all_pairs",
    ),
    Fault(
        "interactions are centred by the means of the wrong side",
        "model/pairwise/measure.py",
        "size * centred - centred.sum(axis=axis, keepdims=True)",
        "centred.shape[-1 - axis] * centred - centred.sum(axis=axis, keepdims=True)",
        f"{MEASURE}::test_one_record_in_any_cell_moves_interactions_by_what_lemma_11_states",
    ),
    Fault(
        "tables are measured both in place of triples and beside them",
        "model/pairwise/measure.py",
        "noise.table_count - (noise.reserved_count if measured.three_way else 0)",
        "noise.table_count",
        "model/pairwise/test_measure_three_way.py::"
        "test_tables_are_measured_in_place_of_triples_or_given_up_for_them",
    ),
    Fault(
        "the exact number of rows decides whether triples are measured",
        "pipeline/learn_model.py",
        "        measured, more = measure_three_way(",
        "        from dataclasses import replace\n"
        "        if rows.number < 2_000:\n"
        "            laws = replace(laws, reserved_count=0)\n"
        "        measured, more = measure_three_way(",
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[three-way interactions]",
    ),
    Fault(
        "verify does not compare the noise of three-way interactions",
        "verification/artefact_checks.py",
        "        same = dict(layout.sigmas) == found.sigmas",
        "        same = bool(found.sigmas)",
        "verification/test_artefact_checks.py::"
        "test_three_way_interactions_that_do_not_follow_from_noisy_counts_are_refused",
    ),
    Fault(
        "the interactions of some pairs are stored without noise",
        "model/pairwise/measure.py",
        "    return {pair: noisy[pair] for pair in pairs}",
        "    for pair, table in zip(owners[cells, sigma], tables, strict=True):\n"
        "        noisy[pair] = table\n"
        "    return {pair: noisy[pair] for pair in pairs}",
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[seedless]",
    ),
    Fault(
        "groups follow from exact counts",
        "model/pairwise/measure.py",
        "    grouped = [own[of_bins] for own, of_bins",
        "    from deniable.model.pairwise.one_way import choose_groups, sum_groups\n"
        "    from deniable.model.pairwise.table_layout import _pair_sigmas\n"
        "    exact = count_values([(QueryAxis(i),) for i in range(len(attributes))])\n"
        "    shares = value_distributions(attributes, [t.dense() for t in exact], sigmas)\n"
        "    shares = [sum_groups(own, s) for own, s in zip(layout.bins, shares, strict=True)]\n"
        "    groups = tuple(map(choose_groups, attributes, shares, [2] * len(shares)))\n"
        "    sigmas = _pair_sigmas(groups, noise.mu_interactions, targets)\n"
        "    layout = replace(layout, groups=groups, interaction_sigmas=sigmas)\n"
        "    measured = replace(measured, groups=groups)\n"
        "    grouped = [own[of_bins] for own, of_bins",
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[pairs are chosen]",
    ),
    Fault(
        "as many pairs are measured as the exact number of rows affords",
        "pipeline/learn_model.py",
        "        weights = table_weights(measured, attributes, laws, targets=targets)",
        "        scale = rows.number / measured.records\n"
        "        values = tuple((own * scale).astype(own.dtype) for own in measured.values)\n"
        "        seen = replace(measured, values=values)\n"
        "        weights = table_weights(seen, attributes, laws, targets=targets)",
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[pairs are chosen]",
    ),
    Fault(
        "the rows of a unit are not bounded",
        "data/partition.py",
        "order[rank < max_rows]",
        "order[rank < len(order)]",
        "data/test_partition.py::test_at_most_max_rows_of_each_unit_are_kept",
    ),
    Fault(
        "the rows of a unit are bounded and then forgotten",
        "pipeline/api.py",
        "    return replace(table, rows=table.rows.limit_per_unit(run.randomness, max_rows=most))",
        "    table.rows.limit_per_unit(run.randomness, max_rows=most)\n    return table",
        "pipeline/test_api.py::test_of_every_person_so_many_rows_count",
    ),
    Fault(
        "a unit of several rows is charged as one row",
        "pipeline/run_plan.py",
        "limit = row_limit(limit, rows=schema.max_rows_per_unit)",
        "limit = row_limit(limit, rows=1)",
        "pipeline/test_run_plan.py::test_a_run_for_units_is_within_what_was_asked_for_a_unit",
    ),
    Fault(
        "later rows of a unit do not multiply δ",
        "privacy/composition.py",
        "math.fsum(_expm1(i * cost.epsilon) + 1 for i in range(rows)) if",
        "rows if",
        "privacy/test_composition.py::test_some_mechanism_costs_as_much_as_is_said",
    ),
    Fault(
        "a row of a unit may have its share of δ, not of what it grows to",
        "privacy/composition.py",
        "return math.expm1(rows * epsilon) / math.expm1(epsilon) * (1 + 1e-12)",
        "return float(rows)",
        "privacy/test_composition.py::test_what_a_row_may_cost_keeps_a_unit_within_the_limit_and_uses_it",
    ),
    Fault(
        "what a draft has cost is not taken off",
        "pipeline/run_plan.py",
        "epsilon=limit.epsilon - draft.epsilon, delta=limit.delta - draft.delta",
        "epsilon=limit.epsilon, delta=limit.delta",
        "pipeline/test_run_plan.py::test_what_a_draft_has_cost_is_part_of_the_total",
    ),
    Fault(
        "a record that breaks a constraint is kept and not drawn anew",
        "release/seed_mechanism.py",
        "& mechanism.feasible(candidates)\n        records = draw_feasible(",
        "\n        records = draw_feasible(",
        "release/test_seed_mechanism.py::test_the_randomized_mechanism_replaces_what_cannot_be",
    ),
    Fault(
        "all rows are counted as seeds, and charged as a part",
        "pipeline/api.py",
        'return make_artefact(learnt, omega, parts["seeds"],',
        "return make_artefact(learnt, omega, table.rows,",
        f"{API}::test_one_shot_counts_the_seeds_of_their_part_alone[learn]",
    ),
    Fault(
        "the rows of D_P are counted as seeds",
        "pipeline/api.py",
        'artefact = make_artefact(learnt, omega, parts["seeds"],',
        'artefact = make_artefact(learnt, omega, parts["parameters"],',
        f"{API}::test_one_shot_counts_the_seeds_of_their_part_alone[synthesize]",
    ),
    Fault(
        "seeds are counted before the rows of a unit are bounded",
        "pipeline/api.py",
        'return make_artefact(learnt, omega, parts["seeds"],',
        "whole = replace(run, schema=replace(run.schema, max_rows_per_unit=99))\n"
        "        return make_artefact(learnt, omega, read_rows(source, whole).rows,",
        f"{API}::test_seeds_are_counted_after_the_rows_of_a_person_are_bounded[2-one-shot]",
    ),
    Fault(
        "candidates are made of all rows",
        "pipeline/api.py",
        '    seeds = parts["seeds"]\n',
        "    seeds = table.rows\n",
        f"{API}::test_candidates_are_made_of_the_seeds_of_their_part_alone[tested]",
    ),
    Fault(
        "privacy noise is keyed",
        "randomness.py",
        "        return SystemRng()",
        "        return KeyedRng(np.random.Generator(np.random.SFC64(1)))",
        "test_randomness.py::test_secret_numbers_do_not_repeat",
    ),
    Fault(
        "the manifest tells an exact count",
        "pipeline/seed_modes.py",
        '"order": [run.schema.names',
        '"seeds": seeds.number, "order": [run.schema.names',
        "release/test_manifest.py::test_nothing_in_it_depends_on_the_rows[tested-3-20]",
    ),
    Fault(
        "kept cells stand in the order of their first appearance",
        "counting/local.py",
        "    return FrequentPrefixes(seeds[representative][:, columns], sizes)",
        "    first = np.argsort(representative)\n"
        "    return FrequentPrefixes(seeds[representative[first]][:, columns], sizes[first])",
        "release/test_seed_histogram.py::test_the_order_of_rows_does_not_matter",
    ),
    Fault(
        "Δ is odd, so that half of it is no whole number",
        "privacy/entropy_scale.py",
        "return 2 * int(np.ceil(units / 2))",
        "return int(np.ceil(units)) | 1",
        "privacy/test_entropy_scale.py::test_the_sensitivity_is_even_and_that_of_lemma_9",
    ),
    Fault(
        "integer noise is charged with the constant of continuous noise",
        "privacy/theorems.py",
        '0.5 if noise == "continuous" else 1 / (1 + math.exp(-epsilon0))',
        "0.5",
        "privacy/test_exact.py::test_dummy_seeds_keep_the_promise_on_every_outcome_and_every_size",
    ),
    Fault(
        "there are no dummy seeds",
        "release/seed_mechanism.py",
        "rng.integers(len(seeds) + dummies, BLOCK)",
        "rng.integers(len(seeds) + 0 * dummies, BLOCK)",
        "release/test_seed_mechanism.py::"
        "test_the_randomized_mechanism_has_its_law_for_tables_of_any_size",
    ),
    Fault(
        "parts are charged the largest of their costs, not their sum",
        "privacy/composition.py",
        "growth = math.fsum(",
        "growth = max(",
        "privacy/test_exact.py::test_a_random_split_costs_what_theorem_10_says",
    ),
    Fault(
        "a printed cost is rounded to the nearest",
        "privacy/wording.py",
        "rounding=ROUND_CEILING",
        'rounding="ROUND_HALF_EVEN"',
        "release/test_manifest.py::test_a_number_is_rounded_up_to_six_digits_and_no_further",
    ),
    Fault(
        "ω is chosen with the exact number of seeds in learn",
        "pipeline/api.py",
        "(learnt, run)\n        return make_artefact(",
        '(replace(learnt, seed_count=parts["seeds"].number), run)\n        return make_artefact(',
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[omega chosen, split]",
    ),
    Fault(
        "ω is chosen with the exact number of seeds in synthesize",
        "pipeline/api.py",
        "(learnt, run)\n        artefact = make_artefact(",
        '(replace(learnt, seed_count=parts["seeds"].number), run)\n'
        "        artefact = make_artefact(",
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[omega chosen, split]",
    ),
    Fault(
        "bins and groups follow from the exact number of rows",
        "model/pairwise/measure.py",
        "records=estimate_records(values, sigmas), targets=targets",
        "records=max(1.0, float(count_values([(QueryAxis(0),)])[0].records)), targets=targets",
        "test_replay.py::test_an_artefact_follows_from_its_noisy_answers",
    ),
    Fault(
        "the system's words are drawn from NumPy",
        "randomness.py",
        'return np.frombuffer(self._read(8 * size), dtype="<u8")',
        "return np.random.default_rng().integers(0, 2**64, size, dtype=np.uint64)",
        f"{REPLAY}::test_words_of_the_system_are_its_bytes",
    ),
    Fault(
        "the system's half words are drawn from NumPy",
        "randomness.py",
        'return np.frombuffer(self._read(4 * size), dtype="<u4")',
        "return np.random.default_rng().integers(0, 2**32, size, dtype=np.uint32)",
        f"{REPLAY}::test_integers_of_the_system_follow_from_its_bytes",
    ),
    Fault(
        "a private draft lists texts in the order of their exact frequency",
        "drafting/noisy_histograms.py",
        "texts = dict(sorted(zip(listed.texts.filter(pl.Series(seen)), released, strict=True)))",
        "exact = dict(zip(listed.texts, listed.counts, strict=True))\n"
        "        pairs = zip(listed.texts.filter(pl.Series(seen)), released, strict=True)\n"
        "        texts = dict(sorted(pairs, key=lambda pair: -exact[pair[0]]))",
        "drafting/test_noisy_histograms.py"
        "::test_texts_are_released_in_their_own_order_and_after_public_cells",
    ),
    Fault(
        "a run that is composed with a private draft has the draft's noise for nothing",
        "privacy/calibration.py",
        "left = mu * mu - draft.mu**2",
        "left = mu * mu",
        "privacy/test_draft_mechanism.py"
        "::test_whatever_schema_the_draft_chooses_draft_and_run_are_within_the_limit",
    ),
    Fault(
        "a draft states the texts of one list, not of all",
        "privacy/draft_mechanism.py",
        "text_delta=upper_bound(lists * scales.text_delta)",
        "text_delta=upper_bound(scales.text_delta)",
        "privacy/test_draft_mechanism.py"
        "::test_the_stated_noise_of_a_draft_is_that_of_its_epsilon_and_delta",
    ),
    Fault(
        "verify forgets that hiding a draft's texts costs ε",
        "verification/second_accountant.py",
        '* 2.0**-41 - math.log1p(-draft["text_delta"])',
        "* 2.0**-41",
        "verification/test_draft_checks.py"
        "::test_what_is_left_is_what_the_plan_calibrates_the_run_for",
    ),
    Fault(
        "verify accepts a draft that states no column and so no texts",
        "verification/second_accountant.py",
        'require(draft["columns"] >= 1, "a draft has at least one column")',
        'if draft["columns"] == 0:\n        return',
        "verification/test_draft_checks.py::test_a_draft_that_hides_its_texts_is_detected",
    ),
    Fault(
        "verify composes a draft with a run for units of several rows",
        "verification/draft_checks.py",
        "allowed = allowed and claims.unit is None and claims.rows_per_unit == 1",
        "",
        "verification/test_draft_checks.py::test_composition_where_the_rule_forbids_it_is_detected",
    ),
    Fault(
        "the rows_max of a private draft is the exact number of rows",
        "drafting/private_draft.py",
        "    rows = int(answer.public[0])",
        "    rows = size",
        "test_replay.py::test_a_private_draft_follows_from_its_noisy_answers",
    ),
    Fault(
        "the number of seeds is at least the exact one",
        "pipeline/learn_model.py",
        "seed_count=round(measured.records),",
        'seed_count=max(parts["seeds"].number, round(measured.records)),',
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[omega given]",
    ),
    Fault(
        "bins follow from exact counts",
        "model/pairwise/measure.py",
        "    shares = value_distributions(attributes, values, sigmas)",
        "    exact = count_values([(QueryAxis(i),) for i in range(len(attributes))])\n"
        "    shares = value_distributions(attributes, [t.dense() for t in exact], sigmas)",
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[numbers]",
    ),
    Fault(
        "two-way tables are measured by the strength of exact interactions",
        "pipeline/learn_model.py",
        "        weights = table_weights(measured, attributes, laws, targets=targets)",
        "        from dataclasses import replace\n"
        "        from deniable.model.pairwise.measure import _query, scaled_interactions\n"
        "        in_groups = [g[b] for g, b in zip(measured.groups, measured.bins, strict=True)]\n"
        "        counter = count_pairs(with_bins(attributes, in_groups))\n"
        "        counted = counter([_query(pair) for pair in measured.interactions])\n"
        "        exact = [scaled_interactions(table.dense()) for table in counted]\n"
        "        known = dict(zip(measured.interactions, exact, strict=True))\n"
        "        known = replace(measured, interactions=known)\n"
        "        weights = table_weights(known, attributes, laws, targets=targets)",
        "test_replay.py::test_an_artefact_follows_from_its_noisy_answers[seedless]",
    ),
    Fault(
        "the threshold of kept prefixes is applied to exact counts",
        "release/seed_histogram.py",
        "is_kept = noisy >= k + law.radius",
        "is_kept = frequent.counts >= k + law.radius",
        f"{REPLAY}::test_kept_prefixes_follow_from_their_noisy_counts",
    ),
    Fault(
        "a seed histogram stores the exact number of seeds",
        "release/seed_histogram.py",
        "counts=counts, records=records), spent",
        "counts=counts, records=int(counted.counts.sum())), spent",
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[omega given]",
    ),
    Fault(
        "the noise of single columns has half of the σ that is charged",
        "model/pairwise/measure.py",
        'rng, exact.dense(), law, what=f"values of {attribute.name}", part="structure"\n        )',
        "rng,\n            exact.dense(),\n"
        "            __import__('deniable').privacy.noise_laws.rounded_gaussian("
        "gaussian_sigma(law) / 2),\n"
        '            what=f"values of {attribute.name}",\n            part="structure",\n'
        "        )\n        spent = replace(spent, law=law)",
        f"{REPLAY}::test_the_noise_that_is_drawn_is_the_noise_of_the_plan[seedless]",
    ),
    Fault(
        "half of the noise is drawn and all of it is charged",
        "privacy/noise.py",
        "law.table.draw(rng, counts.shape)",
        "law.table.draw(rng, counts.shape) // 2",
        f"{REPLAY}::test_noise_has_the_law_of_its_ledger_entry",
    ),
    Fault(
        "noise is drawn once for all tables of a shape",
        "privacy/noise.py",
        "law.table.draw(rng, counts.shape)",
        "add_noise.__dict__.setdefault(f'{law} {counts.shape}', law.table.draw(rng, counts.shape))",
        f"{REPLAY}::test_no_two_questions_share_their_noise",
    ),
    Fault(
        "the first rows of a unit are kept",
        "data/partition.py",
        "np.lexsort((words, units))",
        "np.lexsort((np.arange(len(units)), units))",
        "data/test_partition.py::test_every_choice_of_rows_is_equally_likely",
    ),
    Fault(
        "parts are assigned by the number of the row",
        "data/partition.py",
        "drawn, start = choose_parts(words, bounds), start + len(batch)",
        'drawn = np.searchsorted(bounds, np.arange(len(batch)) / 7 % 1, side="right")',
        "data/test_partition.py::test_a_record_goes_to_each_part_with_the_stated_probability",
    ),
    Fault(
        "a table without kept rows takes another path",
        "pipeline/api.py",
        "    fractions = run.plan.fractions\n",
        '    if not rows.number:\n        raise BudgetError("no row is left")\n'
        "    fractions = run.plan.fractions\n",
        f"{REPLAY}::test_rows_that_are_dropped_leave_no_trace[units-outside1]",
    ),
    Fault(
        "tables of a graph are estimated with the exact number of rows",
        "pipeline/learn_paper_model.py",
        "estimate_tables(counts, structure.graph, run)",
        'estimate_tables([n * parts["parameters"].number for n in counts], structure.graph, run)',
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[norm-sub]",
    ),
    Fault(
        "the order of a graph follows from exact entropies",
        "model/paper/correlation.py",
        "    entropies = noisy + half_sensitivity * noisy_records[0]",
        "    entropies = noisy + half_sensitivity * records",
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[norm-sub]",
    ),
    Fault(
        "the paper's entropies have the sensitivity of the exact number of rows",
        "model/paper/correlation.py",
        "unit = noise.unit(noise.lower_bound(int(noisy_records[0])))",
        "unit = noise.unit(noise.lower_bound(records))",
        "model/paper/test_correlation.py::"
        "test_the_papers_step_follows_from_the_noisy_number_of_records",
    ),
    Fault(
        "empty cells have no noise",
        "privacy/noise.py",
        "    return noisy, spend",
        "    return np.where(counts == 0, 0, noisy), spend",
        "privacy/test_noise.py::test_noise_does_not_depend_on_the_count",
    ),
    Fault(
        "the key of the noise follows from the counts",
        "privacy/noise.py",
        "law.table.draw(rng, counts.shape)",
        "law.table.draw(__import__('deniable').randomness.Keyed(int(abs(counts.sum()))).at('noise'),"
        " counts.shape)",
        "privacy/test_noise.py::test_noise_does_not_depend_on_the_count",
    ),
    Fault(
        "the counts of kept prefixes are stored without noise",
        "release/seed_histogram.py",
        "prefixes, counts = frequent.prefixes[is_kept], noisy[is_kept]",
        "prefixes, counts = frequent.prefixes[is_kept], frequent.counts[is_kept]",
        f"{REPLAY}::test_kept_prefixes_follow_from_their_noisy_counts",
    ),
    Fault(
        "the noisy threshold of a candidate has a key",
        "pipeline/seed_modes.py",
        'rng = run.randomness.at("threshold", block)',
        'rng = __import__("deniable").randomness.Keyed(1).at("threshold", block)',
        f"{STAGES}::test_every_stage_of_a_run_that_reads_rows_is_secret[randomized]",
    ),
    Fault(
        "the split of the rows has a key",
        "pipeline/api.py",
        "rows.split(shares, run.randomness)",
        "rows.split(shares, Keyed(1))",
        f"{STAGES}::test_every_stage_of_a_run_that_reads_rows_is_secret[split]",
    ),
    Fault(
        "the rows of a unit are chosen with a key in a private draft",
        "drafting/private_draft.py",
        'noise.at("units")',
        '__import__("deniable").randomness.Keyed(1).at("units")',
        f"{STAGES}::test_a_private_draft_is_secret",
    ),
    Fault(
        "progress tells the number of rows",
        "pipeline/api.py",
        "    if run.schema.unit is None:\n",
        '    run.progress("read the table", table.rows.number, table.rows.number)\n'
        "    if run.schema.unit is None:\n",
        f"{REPLAY}::test_an_artefact_follows_from_its_noisy_answers[seedless]",
    ),
    Fault(
        "the command prints the number of rows",
        "cli/output.py",
        '        print_text(count_records(records) + f" in {out}", release.guarantee)',
        '        print_text(f"{release.internal}")',
        f"{REPLAY}::test_a_release_and_what_is_printed_follow_from_the_noisy_answers",
    ),
    Fault(
        "the command prints how many cells a fallback adjusted",
        "cli/output.py",
        '        print_text(count_records(records) + f" in {out}", release.guarantee)',
        "        print_text(f\"{release.internal['adjusted_cells']}\")",
        "cli/test_commands.py::test_how_often_a_fallback_was_used_is_in_the_internal_folder_only",
    ),
    Fault(
        "the number of rows stands in the published folder",
        "release/release.py",
        '            write_json(public / "manifest.json", document)\n'
        '            write_json(private / "run.json", self.internal)',
        '            write_json(public / "manifest.json", document)\n'
        '            write_json(public / "run.json", self.internal)',
        f"{REPLAY}::test_a_release_and_what_is_printed_follow_from_the_noisy_answers",
    ),
    Fault(
        "given rows leave without a mark",
        "answers/conditional_release.py",
        "internal = given is not None and not given_is_public",
        "internal = False",
        "answers/test_conditional_release.py::test_the_manifest_names_columns_and_no_cell",
    ),
    Fault(
        "completed rows claim k input rows",
        "answers/conditional_release.py",
        'sentence = wording.without_prefix_claim(sentence, parameters["k"])',
        "sentence = str(sentence)",
        "answers/test_conditional_release.py::test_the_manifest_names_columns_and_no_cell",
    ),
    Fault(
        "evidence does not reach earlier attributes",
        "answers/state_filter.py",
        "own = extended[np.arange(len(extended)), states.codes[:, i]] * states.weights",
        "own = states.weights.copy()",
        "answers/test_inference.py::test_records_have_the_law_of_enumeration"
        "[given0-factors0-seedless]",
    ),
    Fault(
        "prefixes have no weights",
        "answers/state_filter.py",
        "    weights = start.weights[found]\n",
        "    weights = np.ones(len(found))\n",
        "answers/test_inference.py::test_records_have_the_law_of_enumeration"
        "[given1-factors1-combined]",
    ),
    Fault(
        "a bin that a condition cuts counts as a whole one",
        "answers/bin_values.py",
        "return self.allowed.shares[None, :]",
        "return self.allowed.codes[None, :].astype(np.float64)",
        "answers/test_balance.py::test_shares_are_those_of_the_listed_values",
    ),
    Fault(
        "a task on a cluster draws from the system, so that a second run of it draws anew",
        "randomness.py",
        "return Expanded.fresh() if isinstance(randomness, Secret) else randomness",
        "return randomness",
        "counting/spark/test_row_selection.py::test_a_run_of_the_product_draws_from_a_fresh_secret",
    ),
    Fault(
        "a task on a cluster reports the message of a bug, which may be a cell",
        "counting/spark/spark_errors.py",
        "in a task on the cluster; its message is not shown",
        "in a task on the cluster: {error}",
        "counting/spark/test_code_blobs.py::test_a_task_does_not_raise",
    ),
    Fault(
        "a session with a UI is accepted",
        "counting/spark/spark_session.py",
        '    "spark.ui.enabled": ("false", "true"),\n',
        "",
        "counting/spark/test_spark_session.py::test_a_session_with_a_ui_is_refused",
    ),
]


@pytest.fixture(scope="module")
def warm_tests():
    """A process that runs one test after another, each against a source of its own."""
    environment = {**os.environ, **ONE_THREAD}
    program = [sys.executable, ROOT / "tests" / "warm_tests.py"]
    with subprocess.Popen(
        program, env=environment, cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True
    ) as process:
        yield process


def plant(fault, folder):
    """Copy the source, and change one line of the copy."""
    source = folder / "src"
    # Compiled files come along: they are those of the source, which is the same but for one line.
    shutil.copytree(ROOT / "src", source)
    path = source / "deniable" / fault.file
    text = path.read_text(encoding="utf-8")
    assert text.count(fault.line) == 1, "the line to change is not there, or there twice"
    path.write_text(text.replace(fault.line, fault.becomes), encoding="utf-8")
    Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
    return source


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_turns_its_test_red(fault, warm_tests, tmp_path):
    output = tmp_path / "output"
    test = str(ROOT / "tests" / fault.noticed_by)
    request = {"source": str(plant(fault, tmp_path)), "test": test, "output": str(output)}
    warm_tests.stdin.write(json.dumps(request) + "\n")
    warm_tests.stdin.flush()
    code = warm_tests.stdout.readline().strip()
    printed = output.read_text(encoding="utf-8")
    assert code == "1", f"no test failed, exit code {code}:\n{printed[-2000:]}"
    assert "1 failed" in printed
    # A change that cannot run at all is not a fault that a test must notice.
    broken = re.search(r"^E +(NameError|ImportError|SyntaxError|ModuleNotFound)", printed, re.M)
    assert broken is None, f"the planted line does not run: {printed[-2000:]}"
