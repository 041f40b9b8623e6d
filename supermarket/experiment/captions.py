"""The caption of a figure, made by the code that draws it: it can say what is seen.

It is shown below the figure in Jupyter, and becomes the figure's caption on a page.
"""

from typing import Any

__all__ = ["caption"]

_MARK = "supermarket-caption"


def caption(text: str) -> None:
    """Show a caption for the figure of this cell.

    Parameters
    ----------
    text : str
        Markdown, with formulas between dollars.

    Examples
    --------
    >>> from supermarket.experiment.captions import caption
    >>> caption("The longest of $n$ queues has 9 jobs.")
    <IPython.core.display.Markdown object>
    """
    from IPython.display import Markdown, display

    display(Markdown(text), metadata={_MARK: True})


def captioned(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of an executed notebook whose figure has the caption that its code made."""
    outputs = cell.get("outputs", [])
    made = [output for output in outputs if _MARK in output.get("metadata", {})]
    if not made:
        return cell
    about = cell["metadata"].get("mystnb", {})
    figure = about.get("figure", {}) | {"caption": "".join(made[-1]["data"]["text/markdown"])}
    return cell | {
        "outputs": [output for output in outputs if output not in made],
        "metadata": cell["metadata"] | {"mystnb": about | {"figure": figure}},
    }
