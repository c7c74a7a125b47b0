"""Flags: made from the options of Config, in panels, and combined with a configuration file."""

import json
import math
import re
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from command_line import FAST, here
from deniable.cli.options import (
    decimal_number,
    given_options,
    positive_number,
    whole_number,
)
from deniable.config import options


def test_a_file_holds_schema_out_and_records_relative_to_its_folder(deniable, given):
    table, _, schema = given
    Path("jobs").mkdir()
    Path("jobs/s.toml").write_text(Path(schema).read_text())
    Path("jobs/c.toml").write_text(
        'schema = "s.toml"\nout = "../o"\nrecords = 4\nepsilon = inf\nomega = "3"\n'
    )
    run = ("--config", "jobs/c.toml")
    assert deniable("plan", *run).code == 0
    assert deniable("synthesize", table, *run, "--json").json["records"] == 4
    assert Path("o/manifest.json").is_file()
    # Flags win.
    assert deniable("synthesize", table, *run, "--records", 3, "--out", "p", "--json").code == 0
    assert len(Path("p/synthetic.csv").read_text().splitlines()) == 1 + 3
    assert deniable("plan", *run, "--schema", "absent.toml").complains(2, "absent.toml")
    # A learnt artefact takes its place from the file, too; an audit has another folder.
    Path("o").rename("q")
    assert deniable("learn", table, *run).code == 0
    assert Path("o/artefact.json").is_file()
    assert deniable("audit", table, *run).code == 2
    assert "needs TABLE, --schema and --out" in deniable("audit", "--schema", "x", *run).err


@pytest.mark.parametrize(
    ("line", "said"),
    [("records = 4.5", "records must be a whole number"), ("out = 3", "out must be a path")],
)
def test_wrong_types_in_a_file_are_refused_by_name(deniable, given, line, said):
    Path("c.toml").write_text(line)
    assert deniable("synthesize", *given, "--config", "c.toml").complains(2, "c.toml", said)


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
        (["--epsilon", "0"], ["epsilon"]),
        (["--epsilon", "-1"], ["epsilon"]),
        (["--epsilon", "nan"], ["epsilon"]),
        (["--delta", "2"], ["delta"]),
        (["--k", "0"], ["k = 0"]),
        (["--profile", "magic"], ["profile"]),
        (["--data-use", "some"], ["data-use"]),
        (["--estimator", "magic"], ["estimator"]),
        (["--workers", "0"], ["workers"]),
        (["--target", "pets"], ['target "pets"', 'did you mean "pet"']),
        (["--target", "pet", "--estimator", "clip"], ["target needs estimator = pairs"]),
        (["--config", "absent.toml"], ["absent.toml", "cannot be read"]),
    ],
)
def test_an_option_that_makes_no_sense_ends_with_2(deniable, given, more, words):
    for command in (["synthesize", "--records", 5], ["learn"]):
        assert deniable(*command, *given, "--out", "o", *more).complains(2, *words)
    assert deniable("plan", *given[1:], *more).complains(2, *words)
    assert here() == []


@pytest.mark.parametrize("flag", ["--gamma", "--omega-known", "--order"])
def test_a_flag_of_an_option_that_has_none_leads_to_the_configuration_file(deniable, given, flag):
    name = flag[2:].replace("-", "_")
    for typed in ([flag, "3"], [f"{flag}=3"]):
        result = deniable("plan", *given[1:], *typed)
        assert result.complains(2, f"no flag {flag}", f"write {name} into", "--config FILE.toml")
    assert deniable("verify", "o", flag, "3").complains(2, f"No such option: {flag}")


def test_targets_are_given_by_flags_or_by_the_file(deniable, given):
    """The flag may be repeated; flags replace what the file says."""
    Path("c.toml").write_text('target = ["home"]\n')
    for flags, targets in (
        (["--target", "pet", "--target", "years"], ["pet", "years"]),
        (["--config", "c.toml"], ["home"]),
        (["--config", "c.toml", "--target", "pet"], ["pet"]),
    ):
        folder = f"o{len(here())}"
        answer = deniable("learn", *given, "--out", folder, "--mode", "seedless", *flags)
        assert answer.code == 0, answer.err
        manifest = json.loads(Path(folder, "manifest.json").read_text())
        assert manifest["parameters"]["target"] == targets
        assert deniable("verify", folder).code == 0


def test_the_rows_of_a_plan_are_a_whole_number(deniable, given):
    answer = deniable("plan", *given[1:], "--rows", 777, "--json").json
    assert answer["forecast"]["rows"] == 777
    assert deniable("plan", *given[1:], "--rows", "0").complains(2, "--rows 0")
    assert deniable("plan", *given[1:], "--rows", "1,000").complains(2, "such as 1000")


@pytest.mark.parametrize(
    "name", ["kk", "key", "noise", "progress", "model", "source", "table", "clean"]
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


# Misused flags


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--records", "3,000"], ["'--records': 3,000 is not a whole number", "such as 3000"]),
        (["--records", "5", "--epsilon", "1,5"], ["'--epsilon': 1,5", "such as 1.5"]),
        (["--records", "5", "--k", "many"], ["'--k': many", "digits only"]),
        (["--records", "5", "--key", "0x1f"], ["'--key': 0x1f", "digits only"]),
    ],
)
def test_what_is_no_number_is_explained(deniable, given, args, words):
    result = deniable("synthesize", *given, "--out", "o", *args)
    assert result.complains(2, *words)
    assert here() == []


@pytest.mark.parametrize(
    "args",
    [
        ["learn", "table.csv", "--json", "out.json", "--schema", "s", "--out", "o"],
        ["verify", "o", "--json=out.json"],
        ["evaluate", "a.csv", "--json", "out.json", "b.csv", "--schema", "s", "--out", "o"],
    ],
)
def test_a_file_after_json_is_explained(deniable, args):
    result = deniable(*args)
    assert result.complains(2, "ConfigError: ", "--json takes no value", "--json > FILE")
    assert "Usage:" not in result.err


def test_json_may_stand_before_an_argument(deniable):
    assert deniable("verify", "--json", "absent").complains(2, "absent")


def test_arguments_that_are_too_many_end_with_2(deniable):
    assert deniable("verify", "o", "p").complains(2, "too many arguments: p")


@pytest.mark.parametrize("flag", ["--json", "--quiet"])
def test_a_flag_of_commands_before_the_command_is_explained(deniable, flag):
    assert deniable(flag, "verify", "o").complains(2, "ConfigError: ", flag, "after the command")


# Panels, and the options that were given


def test_help_lists_arguments_first_and_the_panels_in_order(deniable):
    lines = deniable("synthesize", "--help").out.splitlines()
    panels = [line.rstrip(":") for line in lines if line.endswith(":") and line[0] != " "]
    assert panels == [
        *("Arguments", "Common", "Privacy", "Model", "Execution", "Output", "Options"),
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


def test_a_switch_that_was_given_is_an_option():
    assert given_options(chosen(accept_drafted_schema=True)) == {"accept_drafted_schema": True}


def test_the_version_is_that_of_the_package(deniable):
    assert deniable("--version").out == f"{version('deniable')}\n"


# Flags with a number


@pytest.mark.parametrize(
    ("text", "number"), [("3000", 3_000), ("+5", 5), ("-1", -1), (" 7 ", 7), (str(2**128), 2**128)]
)
def test_a_whole_number_is_parsed(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize(
    ("text", "example"),
    [
        *((text, "3000") for text in ("3,000", "3.000", "3 000", "3'000", "3_000")),
        ("12,345,678", "12345678"),
        *((text, "1000") for text in ("many", "3e3", "1.5", "", "1,00", "0x10", "٣", "9" * 5_000)),
    ],
)
def test_what_is_no_whole_number_is_explained_with_an_example(text, example):
    with pytest.raises(typer.BadParameter) as error:
        whole_number(text)
    assert error.value.message.startswith(f"{text} is not a whole number")
    assert error.value.message.endswith(f"such as {example}")


def test_a_positive_number_is_at_least_1():
    assert positive_number("1") == 1
    with pytest.raises(typer.BadParameter, match="must be at least 1"):
        positive_number("0")


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1.0), ("0.5", 0.5), ("1e-9", 1e-9), ("inf", math.inf), ("-2", -2)]
)
def test_a_decimal_number_is_parsed(text, number):
    assert decimal_number(text) == number


@pytest.mark.parametrize(
    ("text", "example"),
    [("1,5", "1.5"), ("one", "0.5"), ("", "0.5"), ("1,", "0.5")],
)
def test_what_is_no_number_is_explained_with_an_example(text, example):
    with pytest.raises(typer.BadParameter) as error:
        decimal_number(text)
    assert error.value.message.startswith(f"{text} is not a number")
    assert error.value.message.endswith(f"such as {example}")
