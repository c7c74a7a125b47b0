"""Configuration of the documentation site, which ``make docs`` builds."""

import logging
import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from shutil import copyfile

HERE = Path(__file__).parent
# The pictures and the pages that are made from the source, and the extension below.
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "tools")]

project = "deniable"
author = "the authors of deniable"
version = release = version_of("deniable")
html_title = f"deniable {version}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "repository_links",
    "shared_kernel",
]
exclude_patterns = ["_build"]
nitpicky = True
smartquotes = False

# Markdown
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

# Notebooks: executed whenever they are built, each in a new folder; an error ends the build.
nb_execution_mode = "off" if os.environ.get("NOTEBOOKS") == "off" else "force"
suppress_warnings = ["myst-nb.lexer"] if nb_execution_mode == "off" else []
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 240
nb_merge_streams = True
logging.getLogger("traitlets").setLevel(logging.WARNING)

# The API page
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_custom_sections = [("Privacy", "params_style"), "Deviation"]
# Types that have no page: those of other libraries, and internal ones.
nitpick_ignore_regex = [("py:.*", r"(?!deniable\.[A-Za-z]+$).*")]

# HTML: nothing is loaded from another host, and the search works without a server.
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_search_summary = False
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


def prepare_kernels() -> None:
    """Set up what notebooks inherit: this environment, plots as SVG, texts without colours."""
    ipython = HERE / "_build" / "ipython"
    startup = ipython / "profile_default" / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    copyfile(HERE / "_ext" / "kernel_startup.py", startup / "bash.py")
    (startup.parent / "ipython_kernel_config.py").write_text(
        'c.InlineBackend.figure_formats = {"svg"}\n'
        "c.HistoryManager.enabled = False\n"
        "c.IPKernelApp.log_level = 40\n",
        encoding="utf-8",
    )
    folder = Path(sys.executable).parent
    os.environ |= {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "IPYTHONDIR": str(ipython),
        "MATPLOTLIBRC": str(HERE / "_static" / "matplotlibrc"),
        "COLUMNS": "92",
        "OMP_NUM_THREADS": "1",
        "NO_COLOR": "1",
    }


def write_pages() -> None:
    """Write the pages that are made from the source, for ``include``."""
    from make_cli_page import page  # noqa: PLC0415 - found by the path above

    (HERE / "_build").mkdir(exist_ok=True)
    (HERE / "_build" / "cli.md").write_text(page(), encoding="utf-8")


prepare_kernels()
write_pages()
