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


class InputError(DeniableError):
    """Invalid input; the caller can fix it."""


class ConfigError(InputError):
    """Invalid option, or options that contradict each other."""


class SchemaError(InputError):
    """Invalid or contradictory schema."""


class DataError(InputError):
    """The table does not fit its schema. Names column, line and number of faults; never a cell."""


class ArtefactError(InputError):
    """Not a saved artefact, or a damaged one, or one of another format version."""


class OutputError(InputError):
    """The output path cannot be written to."""


class EngineError(InputError):
    """Spark is not installed, not in reach or not set up as needed, or lost too many executors."""


class BudgetError(DeniableError):
    """The requested guarantee cannot be met."""

    exit_code: ClassVar[int] = 3


class VerificationError(DeniableError):
    """A release does not match its manifest."""

    exit_code: ClassVar[int] = 1


class InvariantError(DeniableError):
    """A violated invariant: a bug. Nothing is released."""

    exit_code: ClassVar[int] = 4
