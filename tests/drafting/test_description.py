"""Drafts of single columns: added notes, and which kinds are modelled."""

import pytest

from deniable.drafting.description import ColumnDraft


def test_remarks_and_notes_are_appended_and_the_rest_stays():
    draft = ColumnDraft(name="x", kind="identifier", notes=("first",), may_be_unit=True)
    more = draft.plus(remarks=("a remark",), notes=("second",))
    assert (more.notes, more.remarks) == (("first", "second"), ("a remark",))
    assert (more.name, more.kind, more.may_be_unit) == ("x", "identifier", True)
    assert draft.notes == ("first",)


@pytest.mark.parametrize(
    ("kind", "modelled"), [("identifier", False), ("constant", False), ("real", True)]
)
def test_identifiers_and_constants_are_not_modelled(kind, modelled):
    assert ColumnDraft(name="x", kind=kind).is_modelled == modelled
