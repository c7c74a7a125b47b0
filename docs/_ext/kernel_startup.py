"""Run in the kernel of every notebook before its first cell: cells of shell commands.

IPython's own ``%%bash`` prints in pieces, which break lines on a page, and goes on after a command
that fails. This one prints once, and any failure is an error of the cell.
"""

import subprocess
import sys

from IPython import get_ipython


def bash(_line: str, cell: str) -> None:
    """Run a cell in bash."""
    done = subprocess.run(  # noqa: S603 - the commands of the page
        ["bash", "-euo", "pipefail", "-c", cell],  # noqa: S607
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout.strip("\n") + "\n")
    done.check_returncode()


get_ipython().register_magic_function(bash, "cell", "bash")
