"""Flags: made from the options of Config, in panels, and combined with a configuration file."""

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from command_line import FAST, here
from deniable.cli.commands import app
from deniable.cli.options import given_options
from deniable.config import options

OPTIONS = [
    *("epsilon", "delta", "k", "omega", "gamma", "epsilon0", "t", "mode", "profile", "data-use"),
    *("max-cost", "estimator", "alpha", "omega-known", "rows-max", "config"),
    *("workers", "accept-drafted-schema", "quiet", "json"),
]


def options_of(command):
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    known = group.commands
    return {text for param in known[command].params for text in param.opts}


@pytest.mark.parametrize("command", ["plan", "learn", "synthesize"])
@pytest.mark.parametrize("option", OPTIONS)
def test_the_options_are_the_same_everywhere(command, option):
    assert f"--{option}" in options_of(command)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("demo", {"--out"}),
        ("learn", {"--schema", "--out"}),
        ("generate", {"--records", "--out", "--key"}),
        ("synthesize", {"--schema", "--records", "--out", "--format", "--key"}),
        ("plan", {"--schema", "--records"}),
    ],
)
def test_a_command_has_options_of_its_own(command, options):
    assert options <= options_of(command)


def test_a_flag_beats_the_config_file_beats_the_profile(deniable, given):
    Path("c.toml").write_text('epsilon = inf\nk = 33\nmode = "seedless"\nomega = "3"\n')
    args = ("synthesize", *given, "--records", 5, "--config", "c.toml", "--profile", "paper")
    assert deniable(*args, "--out", "o", "--mode", "tested", "--k", 20).code == 0
    manifest = json.loads(Path("o/manifest.json").read_text())
    assert manifest["mode"] == "tested"
    assert manifest["parameters"]["k"] == 20  # flag over file over profile
    assert manifest["parameters"]["epsilon"] == "inf"  # file over default
    assert manifest["parameters"]["omega"] == [3]  # file over profile
    assert manifest["data_use"] == "split"  # profile over default
    assert manifest["parameters"]["estimator"] == "clip"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--mode", "magic"], ["mode", "magic", "'one-shot', 'seedless', 'tested', 'randomized'"]),
        (["--omega", "6"], ["omega", "only 5 attributes"]),
        (["--omega", "3-9"], ["omega", "only 5 attributes"]),
        (["--omega", "0"], ["omega"]),
        (["--omega", "some"], ["omega"]),
        (["--omega-known", "maybe"], ["omega-known", "'yes', 'no'"]),
        (["--epsilon", "0"], ["epsilon"]),
        (["--epsilon", "-1"], ["epsilon"]),
        (["--epsilon", "nan"], ["epsilon"]),
        (["--delta", "2"], ["delta"]),
        (["--k", "0"], ["k = 0"]),
        (["--profile", "magic"], ["profile"]),
        (["--data-use", "some"], ["data-use"]),
        (["--estimator", "magic"], ["estimator"]),
        (["--workers", "0"], ["workers"]),
        (["--config", "absent.toml"], ["absent.toml", "cannot be read"]),
    ],
)
def test_an_option_that_makes_no_sense_ends_with_2(deniable, given, more, words):
    for command in (["synthesize", "--records", 5], ["learn"]):
        assert deniable(*command, *given, "--out", "o", *more).complains(2, *words)
    assert deniable("plan", *given[1:], *more).complains(2, *words)
    assert here() == []


@pytest.mark.parametrize(
    "name", ["kk", "records", "key", "noise", "progress", "model", "source", "schema", "out"]
)
def test_an_unknown_option_in_the_config_file_ends_with_2(deniable, given, name):
    """Some are arguments of the Python functions; a file must not reach those."""
    Path("c.toml").write_text(f"{name} = 5\n")
    run = ("synthesize", *given, "--records", 5, "--out", "o", "--config", "c.toml", *FAST)
    assert deniable(*run).complains(2, f'no option "{name}"')
    run = ("learn", *given, "--out", "a", "--config", "c.toml", *FAST)
    assert deniable(*run).complains(2, f'no option "{name}"')


@pytest.mark.parametrize(
    "text",
    [
        "max_cost = inf",
        "max_cost = nan",
        "order = 5",
        'profile = ["paper"]',
        "graph = 3",
        "k =",
        "epsilon0 = 0",
    ],
)
def test_a_fault_in_the_config_file_ends_with_2(deniable, given, text):
    Path("c.toml").write_text(text + "\n")
    run = ("synthesize", *given, "--records", 1, "--out", "o", "--config", "c.toml")
    result = deniable(*run, "--mode", "randomized", "--k", 400, "--delta", 1e-6)
    assert result.complains(2, text.partition(" ")[0] if text != "k =" else "c.toml")


# Panels, and the options that were given


def test_help_lists_arguments_first_and_the_panels_in_order(deniable):
    lines = deniable("synthesize", "--help").out.splitlines()
    panels = [line.rstrip(":") for line in lines if line.endswith(":") and line[0] != " "]
    assert panels == [
        *("Arguments", "Common", "Privacy", "Model", "The paper's modes", "Execution", "Output"),
        "Options",
    ]


def test_every_option_is_in_the_panel_of_its_section(deniable):
    text = deniable("learn", "--help").out
    for option in options().values():
        if option.has_flag:
            panel = re.split(r"\n(?=\S)", text.partition(f"\n{option.section}:")[2])[0]
            assert f"  {option.flag} " in panel or f"  {option.flag}\n" in panel


def chosen(**more):
    """What a command collects if no flag was given."""
    flags = {option.name: None for option in options().values() if option.has_flag}
    return {**flags, "accept_drafted_schema": False, "config": None, **more}


def test_a_flag_that_was_not_given_is_not_an_option():
    """Otherwise its default would beat the configuration file and the profile."""
    assert given_options(chosen()) == {}
    assert given_options(chosen(k=7)) == {"k": 7}


@pytest.mark.parametrize(("text", "value"), [("yes", True), ("no", False)])
def test_yes_and_no_are_true_and_false(text, value):
    assert given_options(chosen(omega_known=text)) == {"omega_known": value}
    assert given_options(chosen(accept_drafted_schema=True)) == {"accept_drafted_schema": True}


def test_a_flag_wins_over_the_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("k = 33\nmax-cost = 9\n")
    assert given_options(chosen(config=path, k=7)) == {"k": 7, "max_cost": 9}


def test_the_version_is_that_of_the_package(deniable):
    assert deniable("--version").out == f"{version('deniable')}\n"
