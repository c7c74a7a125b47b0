"""Write docs/options.md: the table of all options, made from the metadata of ``Config``.

python tools/make_option_table.py
"""

from pathlib import Path

from deniable.config import options
from deniable.option import Option

PAGE = Path(__file__).parents[1] / "docs" / "options.md"

HEAD = """# Options

All options of a run. `learn`, `synthesize` and `plan` take most as flags; `dn.learn`, `dn.synthesize`, `dn.plan` and
`dn.Synthesizer` as keywords; `--config FILE.toml` as keys. A flag wins over the file, the file over the profile, the
profile over the default. This page is made from the source by `tools/make_option_table.py`. `generate` has options of its
own: [given rows, conditions and shares](given-rows.md). For `plan`, `learn` and `synthesize`, the file may also hold `schema`,
`out` (paths relative to the folder of the file) and `records`.
"""

FOOT = """
## An example file

```toml
epsilon = 0.5
mode = "seedless"
rows_max = 100_000
```

`graph` and `order` are for a public structure: state them only if they were not read off this table, since they are not
charged.

```toml
estimator = "norm-sub"
order = ["sex", "age", "job"]

[graph]
age = ["sex"]
job = ["age", "sex"]
```

## Estimators

| `estimator` | measured | then |
|---|---|---|
| `pairs` | one-way tables, then pairs of attributes in bins, and triples if there are enough rows, with Gaussian noise | a network is fitted to them; `buckets`, `alpha` and `parameters` are not used |
| `norm-sub` | entropies for a graph, then its tables | counts of a configuration are lowered equally until none is negative; Dirichlet posterior |
| `clip` | the same | the paper's: negative counts become zero |

The default is `pairs`; `norm-sub` where a graph, an order or a column with `model = "normal"` or `"regression"` is
given; `clip` under `--profile paper`.
"""


def values_of(option: Option) -> str:
    """Describe the allowed values."""
    if option.choices:
        return ", ".join(f"`{choice}`" for choice in option.choices)
    if option.kind is bool:
        return "yes, no"
    if option.bounds is not None:
        kind = "whole number" if option.kind is int else "number"
        low, high = option.bounds
        return f"{kind}, at least {low:g}" if high >= 2**31 else f"{kind}, {low:g} to {high:g}"
    described = {
        "omega": "`auto`, `9`, `9-11`",
        "graph": "names to lists of names",
        "master": "URL",
    }
    return described.get(option.name, "list of names")


def row_of(option: Option) -> str:
    """One row of the table."""
    flag = f"`{option.flag}`" if option.has_flag else "–"
    cells = [f"`{option.name}`", flag, option.text, values_of(option)]
    return "| " + " | ".join([*cells, option.default_text, option.applies_to]) + " |"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    sections = dict.fromkeys(option.section for option in options().values())
    for section in sections:
        parts.append(
            f"\n## {section}\n\n| key | flag | meaning | values | default | applies to |\n"
        )
        parts.append("|---|---|---|---|---|---|\n")
        parts += [row_of(o) + "\n" for o in options().values() if o.section == section]
    return "".join([*parts, FOOT])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
