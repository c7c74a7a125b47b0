"""Every error raised on purpose, by who can fix it.

    DeniableError
    ├── InputError            who brought it: an option, a schema, a table, a place to write  exit 2
    │   ├── ConfigError       an option or a configuration file
    │   ├── SchemaError       schema.toml
    │   ├── DataError         the table
    │   ├── ArtefactError     a saved artefact
    │   └── OutputError       where the release should go
    ├── BudgetError           who asks for a guarantee: it cannot be met                      exit 3
    ├── VerificationError     who published: the release is not what it says                  exit 1
    └── InvariantError        who wrote this program: a bug                                   exit 4

A message says what, where and what to do. It may quote a schema or an option; a cell, never.
"""

from typing import ClassVar


class DeniableError(Exception):
    """Anything that this package raises on purpose."""

    exit_code: ClassVar[int] = 2


class InputError(DeniableError):
    """Something that was brought does not fit: its owner can mend it."""


class ConfigError(InputError):
    """An option, alone or beside another, makes no sense."""


class SchemaError(InputError):
    """The schema is not one, or contradicts itself."""


class DataError(InputError):
    """The table does not fit its schema. Names column, line and number of faults; never a cell."""


class ArtefactError(InputError):
    """What should be a saved artefact is broken, foreign, or of another format."""


class OutputError(InputError):
    """The release cannot be written where it should go."""


class BudgetError(DeniableError):
    """The guarantee asked for cannot be met."""

    exit_code: ClassVar[int] = 3


class VerificationError(DeniableError):
    """A release is not what its manifest says."""

    exit_code: ClassVar[int] = 1


class InvariantError(DeniableError):
    """Something that cannot be, is: a bug. Nothing is released."""

    exit_code: ClassVar[int] = 4
