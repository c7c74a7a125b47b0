"""Target columns: those that matter most, whose pairs get more of the budget. Public."""

import difflib
from collections.abc import Sequence

from deniable.schema.attribute import Attribute
from deniable.schema.unmodelled_columns import SchemaColumn


def find_target_fault(columns: Sequence[SchemaColumn], names: Sequence[str]) -> str:
    """Explain why one of the names is not a target; "" if all of them are learnt columns."""
    kinds = {column.name: column for column in columns}
    for name in names:
        column = kinds.get(name)
        if column is None:
            near = difflib.get_close_matches(name, kinds, n=1)
            hint = f'did you mean "{near[0]}"?' if near else "name a column that is learnt"
            return f'target "{name}": the schema has no such column; {hint}'
        if not isinstance(column, Attribute):
            return (
                f'target "{name}": this column is not learnt (type = "{column.kind}"); name one '
                "that is"
            )
    return ""
