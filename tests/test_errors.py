"""Exceptions: the tree in the module's docstring is the class tree, with its exit codes."""

import inspect
import re

import pytest

from deniable import errors

CLASSES = {
    name: found
    for name, found in vars(errors).items()
    if inspect.isclass(found) and issubclass(found, errors.DeniableError)
}
LINE = re.compile(r"^    (?P<indent>[│├└─ ]*)(?P<name>\w+Error)\b.*?(exit code (?P<code>\d))?$")


def drawn_tree() -> dict[str, tuple[str | None, str | None]]:
    """Parse the docstring: from each class to its parent and its exit code, if it states one."""
    tree: dict[str, tuple[str | None, str | None]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := LINE.match(line):
            depth = len(found["indent"]) // 4
            path[depth:] = [found["name"]]
            tree[found["name"]] = (path[depth - 1] if depth else None, found["code"])
    return tree


def test_the_docstring_draws_the_class_tree():
    parents = {name: parent for name, (parent, _) in drawn_tree().items()}
    bases = {name: found.__bases__[0].__name__ for name, found in CLASSES.items()}
    assert parents == bases | {"DeniableError": None}


def test_the_docstring_has_the_exit_codes():
    codes = {name: int(code) for name, (_, code) in drawn_tree().items() if code is not None}
    assert codes == {name: CLASSES[name].exit_code for name in codes}
    assert len(codes) == 4


@pytest.mark.parametrize(
    "name", [name for name, c in CLASSES.items() if c.__base__ is errors.InputError]
)
def test_every_input_error_has_the_exit_code_of_its_parent(name):
    """2, as for a wrong option of the command line."""
    assert CLASSES[name].exit_code == errors.InputError.exit_code == 2


def test_no_two_kinds_have_the_same_exit_code():
    kinds = errors.DeniableError.__subclasses__()
    assert len({kind.exit_code for kind in kinds}) == len(kinds)
    assert 0 not in {kind.exit_code for kind in kinds}
