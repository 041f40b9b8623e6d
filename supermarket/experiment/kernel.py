"""What the process of a kernel runs: IPython's own, without the settings that anyone has for it.

No profile, startup file or configuration is read, of a user's, of the machine's or in the working
folder. Modules are looked for where this interpreter has them, then where the process found some
that started it, and in the working folder last, so that a file of one's own hides no library's. It
is run by its path: `supermarket.experiment.jupyter`.
"""

import json
import os
import sys
from importlib.util import find_spec

if __name__ == "__main__":
    here = os.getcwd()
    home, *others = json.loads(os.environ.pop("SUPERMARKET_PATH"))
    sys.path[:0] = [folder for folder in [home] if folder not in sys.path]
    sys.path += [folder for folder in [*others, here] if folder not in sys.path]

    # Matplotlib takes a matplotlibrc from where it is imported, then the one that is named, then
    # the user's: it shall be its own.
    os.chdir(os.environ["IPYTHONDIR"])
    os.environ["MATPLOTLIBRC"] = os.path.join(
        os.path.dirname(find_spec("matplotlib").origin), "mpl-data"
    )
    import matplotlib  # noqa: F401

    os.chdir(here)

from ipykernel.kernelapp import IPKernelApp


class Kernel(IPKernelApp):
    """IPython's kernel as it is when nobody has changed it."""

    def load_config_file(self, suppress_errors: bool | None = None) -> None:
        """Read no settings."""

    def _run_startup_files(self) -> None:
        """Run no file of anyone's."""


if __name__ == "__main__":
    Kernel.launch_instance()
