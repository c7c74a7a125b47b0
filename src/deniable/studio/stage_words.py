"""What the stages of a run find out, for a reader who does not know their names."""

# By the beginning of the name of a stage.
_FINDINGS = (
    ("values of ", "how often each value occurs"),
    ("tables of values", "how often each value of a column occurs"),
    ("interactions", "how strongly two columns depend on each other"),
    ("three-way interactions", "what three columns have in common beyond their pairs"),
    ("pairs of attributes", "how often two values occur together"),
    ("seed prefixes", "which combinations of values many rows share"),
    ("entropies", "how much one column tells about another"),
    ("number of records", "how many rows there are"),
    ("counts of ", "how often values occur together"),
    ("tables of counts", "how often values occur together"),
)
# Stages whose noise is on weighted sums, scaled to whole numbers: it is not in rows.
_SCORES = ("interactions", "three-way interactions", "entropies")


def findings(what: str) -> str:
    """What a stage finds out; "" for one that is not known here.

    >>> findings("values of age")
    'how often each value occurs'
    """
    return next((words for start, words in _FINDINGS if what.startswith(start)), "")


def is_in_rows(what: str) -> bool:
    """Whether the noise of a stage is on numbers of rows."""
    return not what.startswith(_SCORES)
