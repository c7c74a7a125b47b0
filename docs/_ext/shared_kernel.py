"""Execute all notebooks of the site in one kernel, one after the other.

A kernel of its own for each page would spend most of its time on the same imports. Before each page
all names are deleted and the folder is a new one, so a page still has to import what it uses.
"""

from typing import TYPE_CHECKING, Any

from jupyter_cache.executors import utils
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from sphinx.application import Sphinx

# Not %reset, which collects garbage: with all libraries loaded, that takes longer than most pages.
_FORGET = """
def forget(names, hidden):
    for name in set(names) - set(hidden):
        del names[name]

forget(get_ipython().user_ns, get_ipython().user_ns_hidden)
import os
os.chdir({folder!r})
del os
"""


class SharedKernel:
    """One kernel for all notebooks; started with the first."""

    def __init__(self) -> None:
        self.manager: KernelManager | None = None

    def execute(self, notebook: "NotebookNode", cwd: str, **options: Any) -> "NotebookNode":
        """Execute a notebook in a folder, in place; options as for ``NotebookClient``."""
        if self.manager is None:
            self.manager = KernelManager()
            self.manager.start_kernel(cwd=cwd)
        notebook.cells.insert(0, new_code_cell(_FORGET.format(folder=cwd)))
        client = NotebookClient(notebook, km=self.manager, **options)
        try:
            return client.execute()
        finally:
            del notebook.cells[0]
            if client.kc is not None:
                client.kc.stop_channels()

    def stop(self, *_event: object) -> None:
        """End the kernel."""
        if self.manager is not None:
            self.manager.shutdown_kernel(now=True)
        self.manager = None


def setup(app: "Sphinx") -> dict[str, bool]:
    """Register the extension."""
    kernel = SharedKernel()
    utils.executenb = kernel.execute
    app.connect("build-finished", kernel.stop)
    return {"parallel_read_safe": False}
