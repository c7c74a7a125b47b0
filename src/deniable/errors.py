"""Exceptions of the package, by who can fix the problem.

    DeniableError
    ├── InputError            invalid input, fixed by the caller            exit code 2
    │   ├── ConfigError       an option or a configuration file
    │   ├── SchemaError       the schema
    │   ├── DataError         the table
    │   ├── ArtefactError     a saved artefact
    │   ├── OutputError       the path to write to
    │   └── EngineError       Spark, or the cluster that it runs on
    ├── BudgetError           the guarantee cannot be met with this budget  exit code 3
    ├── VerificationError     a release that does not match its manifest    exit code 1
    └── InvariantError        a bug, fixed by the maintainers               exit code 4

A message states the problem, its place and the fix. It may quote the schema and options, never a
cell of the table.
"""

from typing import ClassVar


class DeniableError(Exception):
    """Base class of all exceptions that this package raises."""

    exit_code: ClassVar[int] = 2
    # For programs, which read an error as JSON: the message says the same for the case at hand.
    what_to_do: ClassVar[str] = "correct what the message names, and start again"


class InputError(DeniableError):
    """Invalid input; the caller can fix it."""


class ConfigError(InputError):
    """Invalid option, or options that contradict each other."""

    what_to_do = "correct the option or the configuration file, and start again"


class SchemaError(InputError):
    """Invalid or contradictory schema."""

    what_to_do = "correct the schema, from public knowledge only, and start again"


class DataError(InputError):
    """The table does not fit its schema. Names column, line and number of faults; never a cell."""

    what_to_do = "correct the table, or the schema from public knowledge only, and start again"


class ArtefactError(InputError):
    """Not a saved artefact, or a damaged one, or one of another format version."""

    what_to_do = "use an undamaged artefact of this version; to learn one again costs its ε again"


class OutputError(InputError):
    """The output path cannot be written to."""

    what_to_do = "make room where it is written to, or choose another place, and start again"


class EngineError(InputError):
    """Spark is not installed, not in reach or not set up as needed, or lost too many executors."""

    what_to_do = "set up Spark as the message says, or use --engine local"


class BudgetError(DeniableError):
    """The requested guarantee cannot be met."""

    exit_code: ClassVar[int] = 3
    what_to_do = "ask for what the message says is possible"


class VerificationError(DeniableError):
    """A release does not match its manifest."""

    exit_code: ClassVar[int] = 1
    what_to_do = "do not publish or use it; ask who made it, or report it as SECURITY.md describes"


class InvariantError(DeniableError):
    """A violated invariant: a bug. Nothing is released."""

    exit_code: ClassVar[int] = 4
    what_to_do = "report the bug"
