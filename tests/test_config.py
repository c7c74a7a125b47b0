"""Config: who wins where an option is given twice, and what is refused."""

import math
import os
from dataclasses import fields

import pytest

import deniable
from deniable.config import Config, parse_omega, read_options
from deniable.errors import ConfigError

NUMBERS = ["epsilon", "delta", "gamma", "epsilon0", "alpha"]
WHOLE_NUMBERS = [
    *("k", "t", "max_cost", "rows_max", "max_plausible", "max_check_plausible"),
    "workers",
]
CHOICES = ["mode", "profile", "data_use", "estimator", "parameters", "engine"]
SWITCHES = ["omega_known", "accept_drafted_schema", "accept_large_delta", "accept_open_cluster"]

# By field: a value just inside, and values just outside.
BOUNDS: dict[str, tuple[list[float], list[float]]] = {
    "epsilon": ([1e-300, 5.0, math.inf], [-1e-300, -math.inf, 0.0]),
    "delta": ([0.0, 1e-4], [1.01e-4, 0.999, -1e-300, 1.0, 1.0000001, math.inf]),
    "k": ([1, 2**53], [0, -1, 2**53 + 2]),
    "gamma": ([1.001, 2.0**53], [0.999, -4.0, math.inf]),
    "epsilon0": ([1e-6, 4.0], [-1e-6, math.inf]),
    "t": ([1, 2**53], [0, -1]),
    "max_cost": ([1, 2**31], [0, 2**31 + 1]),
    "alpha": ([2.0**-40, 1.0], [0.0, -1.0, math.inf]),
    "rows_max": ([1, 2**53], [0, -5]),
    "max_plausible": ([1], [0]),
    "max_check_plausible": ([1], [0]),
    "workers": ([1, 1024], [0, 1025]),
}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a configuration file and returns its path."""

    def write(text):
        path = tmp_path / "options.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_every_field_is_in_one_of_the_lists_above():
    """A new field must get its bounds and wrong types tested, too."""
    known = {*NUMBERS, *WHOLE_NUMBERS, *CHOICES, *SWITCHES, "omega", "graph", "order", "target"}
    known |= {"master"}
    assert {field.name for field in fields(Config)} == known
    assert set(BOUNDS) == {*NUMBERS, *WHOLE_NUMBERS}


# Precedence


def test_without_anything_there_are_the_defaults_of_the_contract():
    config = Config.assemble({})
    assert config == Config()
    assert (config.epsilon, config.delta, config.k, config.omega) == (1.0, 1e-9, 50, "auto")
    assert (config.gamma, config.alpha, config.omega_known) == (4.0, 1.0, True)
    assert (config.profile, config.data_use) == ("default", "whole")


def test_a_flag_beats_the_file_beats_the_profile_beats_the_default(write):
    file = write('profile = "paper"\nk = 60\ngamma = 5\n')
    config = Config.assemble({"k": 70}, file)
    assert config.k == 70  # flag over file (60), profile (50)
    assert config.gamma == 5.0  # file over profile (4)
    assert config.data_use == "split"  # profile over default (whole)
    assert config.delta == 1e-9  # default


def test_a_flag_beats_the_profile():
    assert Config.assemble({"profile": "paper", "epsilon0": 2.0}).epsilon0 == 2.0


def test_a_profile_may_come_from_flag_or_file_and_the_flag_wins(write):
    file = write('profile = "paper"')
    assert Config.assemble({}, file).mode == "randomized"
    assert Config.assemble({"profile": "default"}, file).mode is None


def test_an_option_that_is_none_was_not_given(write):
    config = Config.assemble({"k": None, "epsilon": None, "mode": None}, write("k = 7"))
    assert (config.k, config.epsilon, config.mode) == (7, 1.0, None)


def test_a_false_or_zero_flag_was_given(write):
    file = write("omega_known = true\naccept_drafted_schema = true\ndelta = 0.5")
    given = {"omega_known": False, "accept_drafted_schema": False, "delta": 0}
    config = Config.assemble(given, file)
    assert (config.omega_known, config.accept_drafted_schema, config.delta) == (False, False, 0.0)


def test_the_paper_s_profile_has_the_paper_s_values():
    """The contract of the profile; Sec. 6.1 of the paper: k 50, γ 4, ε0 1, ω 5-11."""
    config = Config.assemble({"profile": "paper"})
    assert (config.mode, config.data_use) == ("randomized", "split")
    assert (config.k, config.gamma, config.epsilon0, config.omega) == (50, 4.0, 1.0, "5-11")
    assert (config.max_cost, config.alpha, config.estimator) == (300, 1.0, "clip")


# Guards


def test_a_large_delta_must_be_accepted(small_schema):
    """With δ = 0.5 a release may publish every second row: it was accepted without a word."""
    for run in (Config.assemble, lambda options: deniable.plan(small_schema, **options)):
        with pytest.raises(
            ConfigError, match=r"delta = 0\.5 is above 0\.0001.*--accept-large-delta"
        ):
            run({"delta": 0.5})
        assert run({"delta": 0.5, "accept_large_delta": True})
    with pytest.raises(ConfigError, match="accept_large_delta=True"):
        deniable.Synthesizer(delta=2e-4)
    assert Config.assemble({"delta": 0.5, "epsilon": math.inf})  # δ is ignored


# What is refused, always by name


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, (ok, _) in BOUNDS.items() for v in ok])
def test_a_number_inside_its_bounds_is_taken(name, value):
    taken = getattr(Config.assemble({name: value}), name)
    assert taken == value
    assert type(taken) is (int if name in WHOLE_NUMBERS else float)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, (_, out) in BOUNDS.items() for v in out])
def test_a_number_outside_its_bounds_is_refused(name, value):
    with pytest.raises(ConfigError, match=rf"^{name} = "):
        Config.assemble({name: value})


@pytest.mark.parametrize("name", ["epsilon0", "gamma"])
def test_a_bound_that_no_run_can_use_is_refused(name):
    """ε0 = 0 is no noise at all, and ranges of probabilities need γ > 1 where they are used."""
    out = {"epsilon0": 0.0, "gamma": 1.0}[name]
    options = {"mode": "tested", "omega": "2-3", "omega_known": False, name: out}
    with pytest.raises(ConfigError, match=rf"^{name} = "):
        Config.assemble(options)


@pytest.mark.parametrize("name", NUMBERS + WHOLE_NUMBERS)
@pytest.mark.parametrize("value", ["3", True, [1], {"a": 1}, math.nan], ids=repr)
def test_what_is_no_number_is_refused(name, value):
    with pytest.raises(ConfigError, match=rf"^{name} = "):
        Config.assemble({name: value})


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
@pytest.mark.parametrize("value", [2.5, math.inf, -math.inf])
def test_what_is_no_whole_number_is_refused(name, value):
    with pytest.raises(ConfigError, match=rf"^{name} = "):
        Config.assemble({name: value})


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_too_large_for_a_float_is_refused(name):
    with pytest.raises(ConfigError, match=rf"^{name} = "):
        Config.assemble({name: 10**400})


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("value", ["onse-shot", "", 3, True, ["paper"], {"mode": 1}], ids=repr)
def test_what_is_not_among_the_choices_is_refused(name, value):
    with pytest.raises(ConfigError, match=rf"^{name} = .*must be one of"):
        Config.assemble({name: value})


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", ["yes", 1, 0, [True]], ids=repr)
def test_what_is_neither_true_nor_false_is_refused(name, value):
    with pytest.raises(ConfigError, match=rf"^{name} = .*true or false"):
        Config.assemble({name: value})


@pytest.mark.parametrize("value", [3, "pet", [["home", "pet"]], {"pet": 5}, {"pet": "home"}])
def test_what_is_no_graph_is_refused(value):
    """Parents by name, in lists: a text would be taken for a list of letters."""
    with pytest.raises(ConfigError, match="graph"):
        Config.assemble({"graph": value})


@pytest.mark.parametrize("value", [3, True, "pet", {"pet": 1}], ids=repr)
def test_what_is_no_list_of_names_is_refused(value):
    for name in ("order", "target"):
        with pytest.raises(ConfigError, match=f"{name} = .*: must be a list of"):
            Config.assemble({name: value})


def test_a_graph_and_an_order_are_taken():
    config = Config.assemble({"graph": {"pet": ["home"]}, "order": ["home", "pet"]})
    assert config.graph == {"pet": ["home"]}
    assert config.order == ("home", "pet")


@pytest.mark.parametrize("name", ["epsilonn", "Epsilon", "max-cost", "records", "key", "noise"])
def test_an_unknown_option_is_refused(name):
    with pytest.raises(ConfigError, match=rf'no option "{name}"'):
        Config.assemble({name: 1})


# Omega


@pytest.mark.parametrize(
    ("text", "omegas"),
    [
        ("auto", None),
        ("1", (1,)),
        ("9", (9,)),
        ("9-9", (9,)),
        ("9-11", (9, 10, 11)),
        ("5-11", (5, 6, 7, 8, 9, 10, 11)),
    ],
)
def test_omega_means(text, omegas):
    assert parse_omega(text) == omegas


@pytest.mark.parametrize(
    "text",
    ["", "0", "-1", "0-3", "3-2", "1-", "-", "1,2", "1.0", "9 - 11", "AUTO", "many", "1-2-3"],
)
def test_what_is_no_omega_is_refused(text):
    with pytest.raises(ConfigError, match="omega"):
        parse_omega(text)
    with pytest.raises(ConfigError, match="omega"):
        Config.assemble({"omega": text})


def test_omega_may_be_a_whole_number_in_a_file(write):
    assert Config.assemble({}, write("omega = 3")).omega == "3"


@pytest.mark.parametrize("value", [2.5, True, ["9"], {"from": 1}], ids=repr)
def test_omega_is_text_or_a_whole_number(value):
    with pytest.raises(ConfigError, match="omega"):
        Config.assemble({"omega": value})


# Files


def test_every_option_can_be_written_to_a_file(write):
    """The contract: options are the same as flags, in the file and as Python keywords."""
    text = """
        epsilon = inf
        delta = 1e-6
        mode = "tested"
        profile = "default"
        data_use = "split"
        k = 20
        omega = "2-3"
        omega_known = false
        gamma = 2
        epsilon0 = 0.5
        t = 3
        max_cost = 10
        estimator = "clip"
        alpha = 2
        parameters = "drawn"
        order = ["home", "pet"]
        target = ["pet"]
        rows_max = 1_000
        max_plausible = 30
        max_check_plausible = 40
        workers = 1
        engine = "spark"
        master = "spark://host:7077"
        accept-open-cluster = true
        accept_drafted_schema = true
        accept_large_delta = true
        [graph]
        pet = ["home"]
    """
    written = read_options(write(text))
    assert set(written) == {field.name for field in fields(Config)}
    config = Config.assemble({}, write(text))
    assert config.epsilon == math.inf
    assert (config.gamma, type(config.gamma)) == (2.0, float)
    assert (config.omega_known, config.rows_max, config.order) == (False, 1_000, ("home", "pet"))
    assert (config.graph, config.target) == ({"pet": ["home"]}, ("pet",))


@pytest.mark.parametrize("text", ["k = ", "k 5", "[k", b"k = 1\xff", "k = 1\nk = 2"])
def test_a_file_that_is_not_toml_is_refused(write, text):
    path = write(text)
    with pytest.raises(ConfigError, match=r"options\.toml: not a TOML file"):
        Config.assemble({}, path)


@pytest.mark.parametrize("text", ["k = " + "[" * 100_000, "k = " + "9" * 100_000])
def test_a_file_that_nests_or_counts_too_far_is_refused(write, text):
    path = write(text)
    with pytest.raises(ConfigError, match=r"options\.toml: .*(too deeply|not a TOML file)"):
        Config.assemble({}, path)


def test_a_file_that_is_not_there_or_no_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot be read"):
        Config.assemble({}, tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="is a folder"):
        Config.assemble({}, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is a pipe"):
        Config.assemble({}, tmp_path / "pipe")


def test_the_fault_of_a_file_is_found_by_name(write):
    with pytest.raises(ConfigError, match=r"^k = 0"):
        Config.assemble({}, write("k = 0"))
    with pytest.raises(ConfigError, match='no option "kk"'):
        Config.assemble({}, write("kk = 5"))
    with pytest.raises(ConfigError, match=r"^k = "):
        Config.assemble({}, write("k = inf"))
    with pytest.raises(ConfigError, match=r"^profile = "):
        Config.assemble({}, write('profile = ["paper"]'))


# How noisy counts become a model

ORDER = ["a", "b"]


@pytest.mark.parametrize(
    ("given", "estimator", "max_cost"),
    [
        ({}, "pairs", None),
        ({"graph": {}}, "norm-sub", 300),
        ({"order": ORDER}, "norm-sub", 300),
        ({"estimator": "clip"}, "clip", 300),
        ({"estimator": "norm-sub", "graph": {}, "order": ORDER}, "norm-sub", 300),
        ({"profile": "paper"}, "clip", 300),
        ({"max_cost": 7}, "pairs", 7),
        ({"graph": {}, "max_cost": 7}, "norm-sub", 7),
    ],
)
def test_what_is_left_open_is_settled(given, estimator, max_cost):
    """Pairs, unless a graph or an order is given; a manifest tells what it was."""
    config = Config.assemble(given)
    assert config.chosen_estimator == estimator
    assert config.uses_pairs == (estimator == "pairs")
    most = config.max_configurations
    assert most == max_cost or (max_cost is None and most > 300)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"graph": {}}, "finds its own graph and order; use norm-sub"),
        ({"order": ORDER}, "finds its own graph and order; use norm-sub"),
        ({"profile": "paper"}, "the paper counts a graph's tables, not pairs; use clip"),
    ],
)
def test_pairs_and_what_they_would_not_use_are_refused(given, complaint):
    """Or an order that was given would be passed over without a word."""
    with pytest.raises(ConfigError, match=complaint):
        Config.assemble({"estimator": "pairs", **given})
