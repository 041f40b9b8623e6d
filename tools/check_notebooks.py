"""Check that no notebook is committed with results in it: `python -m tools.check_notebooks`."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CURE = "clear all outputs and save, or `nbstripout --keep-id` it, before committing"


def faults(notebook: Path) -> list[str]:
    """Return what a committed notebook may not hold, one sentence a fault."""
    try:
        content = json.loads(notebook.read_text(encoding="utf-8"))
    except ValueError as error:
        return [f"{notebook.name} is not a notebook: {error}."]
    found = set()
    for cell in content["cells"]:
        if cell.get("outputs"):
            found.add("outputs")
        if cell.get("execution_count") is not None:
            found.add("execution counts")
        if "papermill" in cell["metadata"] or "execution" in cell["metadata"]:
            found.add("times of execution")
        if "injected-parameters" in cell["metadata"].get("tags", []):
            found.add("injected parameters")
    if "papermill" in content["metadata"] or "widgets" in content["metadata"]:
        found.add("metadata of a run")
    return [f"{notebook.name} holds {', '.join(sorted(found))}: {CURE}."] if found else []


def main(root: Path = ROOT) -> int:
    """Print the faults of every notebook in `root/notebooks`; return 1 if there are any."""
    found = [f for notebook in sorted(root.glob("notebooks/*.ipynb")) for f in faults(notebook)]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
