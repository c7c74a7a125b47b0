"""The documentation site: its examples run, and what it is made from is complete and current.

``make docs`` builds the site, and executes the notebooks; these are the parts that need no build.
"""

import ast
import doctest
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest
import repository_links

import deniable
import draw_pictures
import draw_plots
import make_cli_page
from deniable.config import options

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
FENCE = re.compile(r"^```(\{?[\w-]*\}?)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(text: str, *kinds: str) -> list[str]:
    """The contents of all blocks of code of these kinds."""
    return [body for kind, body in FENCE.findall(text) if kind in kinds]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# The Python page


def examples() -> str:
    return "\n".join(blocks(read("docs/reference/python.md"), "pycon"))


@pytest.mark.slow
def test_the_examples_of_the_python_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    parsed = doctest.DocTestParser().get_doctest(examples(), {}, "python.md", None, 0)
    result = doctest.DocTestRunner(optionflags=flags).run(parsed)
    assert result.failed == 0, capsys.readouterr().out
    assert result.attempted > 40


@pytest.mark.parametrize("name", deniable.__all__)
def test_every_public_name_is_on_the_python_page_and_in_an_example(name):
    page = read("docs/reference/python.md")
    assert re.search(rf"^\.\. auto(function|class|exception):: {name}$", page, re.MULTILINE)
    if name not in ("Artefact", "Release", "DeniableError"):  # objects that others return
        assert re.search(rf"\bdn\.{name}\b", examples())


# Notebooks


@pytest.mark.slow
def test_notebooks_share_a_kernel_and_nothing_else(tmp_path):
    """The second page finds modules loaded, but neither names nor files of the first."""
    shared_kernel = pytest.importorskip("shared_kernel", reason="make docs installs it")
    nbformat = pytest.importorskip("nbformat.v4")
    kernel = shared_kernel.SharedKernel()

    def execute(folder, *cells):
        (tmp_path / folder).mkdir()
        notebook = nbformat.new_notebook(cells=[nbformat.new_code_cell(cell) for cell in cells])
        kernel.execute(notebook, cwd=str(tmp_path / folder), timeout=60)
        return [cell.outputs for cell in notebook.cells]

    try:
        assert execute(
            "one", "import os, sys; sys.mark = value = 1", "print(open('page', 'w').name)"
        )
        checks = ("assert 'value' not in globals() and 'os' not in globals()", "import os, sys")
        [_, _, [shown]] = execute("two", *checks, "print(sys.mark, os.listdir())")
        assert shown.text == "1 []\n"
        with pytest.raises(Exception, match="NameError"):
            execute("three", "value")
    finally:
        kernel.stop()


# The command line page, and commands in all documents


def flags_of(command: str) -> set[str]:
    parameters = make_cli_page.commands()[command].params
    return {"--help"} | {flag for each in parameters for flag in (*each.opts, *each.secondary_opts)}


def test_the_command_line_page_has_every_command_and_every_flag_of_the_options():
    page = make_cli_page.page()
    sections = dict(re.findall(r"^## deniable (\w+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.M))
    assert set(sections) == set(make_cli_page.commands())
    shown = set(re.findall(r"^\| `(--[\w-]+)", sections["synthesize"], re.MULTILINE))
    assert {option.flag for option in options().values() if option.has_flag} <= shown


def command_lines(text: str) -> Iterator[list[str]]:
    """Yield the words of every line of shell that runs ``deniable``; comments left out."""
    for block in blocks(text, "", "bash", "{code-cell}"):
        if block.startswith(("```", "import", "from")) or "def " in block:
            continue
        for line in block.replace("\\\n", " ").splitlines():
            start = re.match(r"\s*(?:\S*/)?(deniable [a-z].*)", line)
            if start is not None:
                words = shlex.shlex(start.group(1), posix=True, punctuation_chars="|&>")
                words.whitespace_split = True
                yield list(takewhile(lambda word: word[0] not in "|&>", words))


def wrong_commands(text: str) -> list[str]:
    """Return the lines that call a command or an option that does not exist."""
    known = make_cli_page.commands()
    wrong = []
    for words in command_lines(text):
        command, *rest = words[1:]
        flags = {word.partition("=")[0] for word in rest if word.startswith("--")}
        if command not in known or not flags <= flags_of(command):
            wrong.append(" ".join(words))
    return wrong


@pytest.mark.parametrize(
    "path",
    [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_command_in_a_document_exists_with_its_options(path):
    text = path.read_text(encoding="utf-8")
    assert wrong_commands(text) == []
    for block in blocks(text, "python"):
        ast.parse(block)


@pytest.mark.parametrize(
    ("line", "is_wrong"),
    [
        ("deniable verify release --against people.csv  # --no-such", False),
        ("deniable verify release --again people.csv", True),
        ("deniable verfy release", True),
        (".venv/bin/deniable plan --schema s.toml | grep --no-such", False),
        ("deniable synthesize t.csv \\\n  --scheme s.toml", True),
    ],
)
def test_a_command_that_does_not_exist_is_found(line, is_wrong):
    assert bool(wrong_commands(f"before\n```\n{line}\n```\nafter\n")) == is_wrong


def test_commands_were_found_in_the_documents():
    for name in ("README.md", "docs/tutorials/first-release.md", "docs/howto/pipeline.md"):
        assert len(list(command_lines(read(name)))) >= 3


# Pictures


PICTURES = draw_pictures.PICTURES | draw_plots.PLOTS


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_that_of_its_code(name):
    """Run tools/draw_pictures.py and tools/draw_plots.py after a change."""
    assert (draw_pictures.FOLDER / name).read_text(encoding="utf-8") == PICTURES[name]()


@pytest.mark.parametrize(
    ("page", "names"),
    [("docs/how-it-works.md", draw_pictures.PICTURES), ("docs/utility.md", draw_plots.PLOTS)],
)
def test_every_picture_is_shown(page, names):
    text = read(page)
    assert all(re.search(rf"^!\[.+\]\(img/{name}\)$", text, re.MULTILINE) for name in names)


def test_a_plot_has_every_number_of_its_table():
    plot = draw_plots.draw_relations()
    rows = draw_plots.rows_under("## Relations", "| V")
    numbers = [draw_plots.number(cell) for row in rows for cell in row[1:4]]
    assert len(rows) >= 5
    assert all(f">{number:.3g}<" in plot for number in numbers if number is not None)


# Links to files of the repository


@pytest.mark.parametrize(
    ("folder", "text", "expected"),
    [
        (DOCS, "[a](schema.md#bins)", "[a](/schema.md#bins)"),
        (DOCS / "tutorials", "[a](../schema.md)", "[a](/schema.md)"),
        (ROOT, "[a](docs/schema.md)", "[a](/schema.md)"),
        (ROOT, "![a](docs/img/report.png)", "![a](/img/report.png)"),
        (
            DOCS,
            "![a](img/modes.svg)",
            f":::{{container}} picture\n```{{raw}} html\n:file: {DOCS}/img/modes.svg\n```\n:::",
        ),
        (ROOT, "[a](CONTRIBUTING.md#style)", "[a](/contributing.md#style)"),
        (DOCS, "[b](../benchmarks/RESULTS.md)", "[b](/benchmarks.md)"),
        (ROOT, "[decisions](docs/adr)", "[decisions](/decisions.md)"),
        (DOCS, "[../examples/own_model.py](../examples/own_model.py)", "`examples/own_model.py`"),
        (DOCS, "[a model](../examples/own_model.py)", "a model (`examples/own_model.py`)"),
        (DOCS, "[a](https://example.org) [b](#part)", "[a](https://example.org) [b](#part)"),
        (DOCS, "[a](no-such-page.md)", "[a](no-such-page.md)"),
    ],
)
def test_a_link_to_the_repository_leads_to_a_page(folder, text, expected):
    assert repository_links.rewrite_links(text, folder) == expected


def test_the_readme_lists_every_tutorial():
    text = read("README.md")
    assert all(f"](docs/tutorials/{each.name})" in text for each in DOCS.glob("tutorials/*.md"))


def test_every_page_is_in_the_contents_or_included():
    """A page that no table of contents lists cannot be found. Sphinx would warn; this is faster."""
    listed = " ".join(blocks(read("docs/index.md"), "{toctree}"))
    for path in PAGES:
        name = path.relative_to(DOCS).with_suffix("").as_posix()
        assert name == "index" or name.startswith("adr/") or re.search(rf"^{name}$", listed, re.M)
