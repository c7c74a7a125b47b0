"""Arguments are converted as the library converts them, and pydantic is not needed for it."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer

from deniable.cli.argument_conversion import use_plain_conversion
from deniable.cli.options import number_flag

# What a user may type, and what only the library can refuse.
PLAIN = [
    [],
    ["table.csv"],
    ["x y", "missing/file", "--name", "é", "--out", "."],
    ["x", "--number", " 12 ", "--share", "0.5", "--mode", "two", "--quiet"],
    ["x", "--columns", "a", "--columns", "b"],
]
REFUSED = [["x", "--mode", "three"], ["x", "--mode"], ["x", "--unknown"], ["x", "y", "z"]]


def made(found: dict[str, Any]) -> Any:
    """A command with a parameter of each kind that ours have, which keeps what it is given."""
    program = typer.Typer(add_completion=False)

    @program.command()
    def command(
        first: Annotated[str, typer.Argument()] = "none",
        second: Annotated[Path | None, typer.Argument()] = None,
        *,
        name: str | None = None,
        out: Path = Path("there"),
        number: Annotated[int | None, number_flag("--number", int)] = None,
        share: Annotated[float, number_flag("--share", float)] = 0.1,
        mode: Literal["one", "two"] = "one",
        columns: list[str] | None = None,
        quiet: bool = False,
    ) -> None:
        found.update(first=first, second=second, name=name, out=out, number=number, share=share)
        found.update(mode=mode, columns=columns, quiet=quiet)

    return typer.main.get_command(program)


def parsed(arguments, *, plainly):
    """The arguments as the command gets them, or the complaint."""
    found: dict[str, Any] = {}
    command = made(found)
    if plainly:
        use_plain_conversion(command.get_params(typer.Context(command)))
    try:
        command.main(arguments, prog_name="p", standalone_mode=False)
    except Exception as error:
        return type(error), str(error)
    return {name: (type(value), value) for name, value in found.items()}


@pytest.fixture
def without_pydantic(monkeypatch):
    def refuse(parameter):
        raise AssertionError(f"pydantic is needed for {parameter.name}")

    monkeypatch.setattr("typer.core._TyperParameter.get_runtime_param", refuse)


@pytest.mark.parametrize("arguments", PLAIN + REFUSED)
def test_arguments_become_what_the_library_makes_of_them(arguments):
    found = parsed(arguments, plainly=True)
    assert found == parsed(arguments, plainly=False)
    assert (type(found) is dict) == (arguments in PLAIN)


@pytest.mark.usefixtures("without_pydantic")
@pytest.mark.parametrize("arguments", PLAIN)
def test_plain_arguments_do_not_need_pydantic(arguments):
    assert type(parsed(arguments, plainly=True)) is dict


def test_a_required_argument_that_is_missing_is_refused_by_the_library():
    program = typer.Typer(add_completion=False)

    @program.command()
    def command(table: str) -> None:
        raise AssertionError(table)

    made_command: Any = typer.main.get_command(program)
    use_plain_conversion(made_command.params)
    with pytest.raises(Exception, match="Missing"):
        made_command.main([], standalone_mode=False)


@pytest.mark.usefixtures("without_pydantic")
@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("plan", "--schema", "absent.toml", "--omega", "3", "--mode", "tested")],
)
def test_the_program_itself_does_not_need_pydantic(deniable, arguments):
    found = deniable(*arguments)
    assert found.code == (0 if arguments == ("--version",) else 2)
    assert "AssertionError" not in found.err
