"""One figure style for the whole book.

A prediction is a line, the theorem's own line is black, a measurement is points with intervals, and
the same number of choices d has the same colour everywhere.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from supermarket.estimate.intervals import Interval

__all__ = [
    "axes",
    "colour",
    "levels_map",
    "look",
    "marker",
    "measured",
    "rays",
    "share_map",
    "transformed",
    "use_style",
]

THEOREM = "black"
BEYOND = 1e12  # what no linear axis of a page should reach: a computation has gone wrong

# What is wrong with the figures drawn so far in this process, one line each.
faults: list[str] = []

# Okabe and Ito's palette, distinguishable with any kind of colour vision.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
_TONES = ("#a6cee3", "#fdd9a0", "#b2df9a", "#d9c9e6")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def use_style() -> None:
    """Set the book's figure style for this process, whatever a matplotlibrc says.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> from supermarket.experiment import plotting
    >>> with mpl.rc_context():
    ...     plotting.use_style()
    ...     mpl.rcParams["figure.facecolor"]
    'white'
    """
    mpl.rcdefaults()
    mpl.rcParams.update(
        {
            "figure.figsize": (7.0, 4.2),
            "figure.dpi": 144,
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "font.size": 12,
            "legend.frameon": False,
            "lines.markersize": 6,
            "axes.prop_cycle": mpl.cycler(color=_PALETTE),
            "figure.hooks": ["supermarket.experiment.plotting:watch"],
        }
    )


def watch(figure: Figure) -> None:
    """Look at a figure whenever it is drawn, and note in `faults` an axis that left all bounds.

    That is a linear axis that reaches `BEYOND`, or any whose numbers are multiples of so much.
    pyplot calls this for each new figure once `use_style` was called, and
    `supermarket.experiment.Experiment.finish` refuses a page with such a figure.
    """

    def look(_event: object) -> None:
        for ax in figure.axes:
            for axis in (ax.xaxis, ax.yaxis):
                ends = axis.get_view_interval()
                text = axis.get_offset_text().get_text()
                power = re.search(r"(?:1e|10\^\{)(\d+)", text)
                linear = axis.get_scale() == "linear"
                if (power and 10.0 ** int(power[1]) >= BEYOND) or (
                    linear and not np.abs(ends).max() < BEYOND
                ):
                    name = ax.get_title() or axis.get_label_text() or "a figure"
                    fault = f"{name}: an axis goes from {ends[0]:g} to {ends[1]:g}"
                    if fault not in faults:
                        faults.append(fault)

    figure.canvas.mpl_connect("draw_event", look)


def axes(rows: int = 1, **options: object) -> tuple[Figure, np.ndarray]:
    """Return a figure and its axes in the book's style, an array: one below the other, for phones.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from supermarket.experiment import plotting
    >>> figure, (above, below) = plotting.axes(rows=2, sharex=True)
    >>> plt.close(figure)
    """
    use_style()
    width, height = mpl.rcParams["figure.figsize"]
    figure, grid = plt.subplots(rows, 1, figsize=(width, height * rows), squeeze=False, **options)
    return figure, grid.ravel()


def colour(d: int) -> str:
    """Return the colour of `d` choices.

    Examples
    --------
    >>> from supermarket.experiment import plotting
    >>> plotting.colour(2)
    '#D55E00'
    """
    return _PALETTE[_index(d)]


def marker(d: int) -> str:
    """Return the marker of `d` choices, so that colour is never the only sign.

    Examples
    --------
    >>> from supermarket.experiment import plotting
    >>> plotting.marker(2)
    's'
    """
    return _MARKERS[_index(d)]


def look(d: int) -> dict[str, Any]:
    """Return how points of `d` choices are drawn, as options of `plot`.

    Examples
    --------
    >>> from supermarket.experiment import plotting
    >>> plotting.look(2)
    {'color': '#D55E00', 'marker': 's', 'fillstyle': 'none', 'ls': ''}
    """
    return {"color": colour(d), "marker": marker(d), "fillstyle": "none", "ls": ""}


def transformed(interval: Interval, scale: Callable[[np.ndarray], np.ndarray]) -> Interval:
    """Return the interval on another scale, which may reverse the order.

    Examples
    --------
    >>> from supermarket.experiment import plotting
    >>> from supermarket.estimate.intervals import Interval
    >>> busy = Interval(0.9, 0.875, 0.925, 0.95)
    >>> idle = plotting.transformed(busy, lambda share: 1 - share)
    >>> round(float(idle.low), 3), round(float(idle.high), 3)
    (0.075, 0.125)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate, low, high = (
            scale(np.asarray(end)) for end in (interval.estimate, interval.low, interval.high)
        )
    return replace(
        interval, estimate=estimate, low=np.minimum(low, high), high=np.maximum(low, high)
    )


def measured(
    ax: Axes,
    x: ArrayLike,
    interval: Interval,
    d: int,
    label: str = "",
    index: ArrayLike | slice = slice(None),
) -> None:
    """Draw estimates as points with their intervals, those at `index` of an array.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from supermarket.experiment import plotting
    >>> from supermarket.estimate.intervals import mean_interval
    >>> figure, (ax,) = plotting.axes()
    >>> plotting.measured(ax, 2, mean_interval([2.1, 2.2, 2.4]), d=2, label="two choices")
    >>> plt.close(figure)
    """
    estimate, below, above = (
        np.atleast_1d(end)[index] for end in (interval.estimate, interval.low, interval.high)
    )
    low, high = estimate - below, above - estimate
    ax.errorbar(
        np.atleast_1d(x),
        estimate,
        yerr=np.maximum([low, high], 0),
        fmt=marker(d),
        color=colour(d),
        markerfacecolor="none",
        markeredgewidth=1.5,
        capsize=3,
        label=label or None,
    )


def levels_map(ax: Axes, x: ArrayLike, y: ArrayLike, levels: ArrayLike) -> None:
    """Draw whole numbers over a grid as bands of alternating tones with the numbers in them.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from supermarket import Supermarket, k_lambda_d
    >>> from supermarket.experiment import plotting
    >>> figure, (ax,) = plotting.axes()
    >>> rates, choices = [0.9, 0.99, 0.999], [2, 5, 10]
    >>> levels = [[k_lambda_d(Supermarket(1000, d, lam)) for lam in rates] for d in choices]
    >>> plotting.levels_map(ax, rates, choices, levels)
    >>> sorted(text.get_text() for text in ax.texts)
    ['1', '10', '2', '3', '4', '5', '7']
    >>> plt.close(figure)
    """
    levels = np.asarray(levels)
    tones = mpl.colors.ListedColormap(_TONES)
    ax.pcolormesh(x, y, levels % len(_TONES), cmap=tones, vmin=-0.5, vmax=len(_TONES) - 0.5)
    for level in np.unique(levels):
        places = np.argwhere(levels == level)
        # The cell of the band that is nearest to its middle.
        row, column = places[np.abs(places - places.mean(axis=0)).sum(axis=1).argmin()]
        at = (np.asarray(x)[column], np.asarray(y)[row])
        halo = [patheffects.withStroke(linewidth=3, foreground="white")]
        ax.text(*at, f"{level:g}", ha="center", va="center", weight="bold", path_effects=halo)
    ax.grid(visible=False)


def share_map(
    figure: Figure, ax: Axes, x: ArrayLike, y: ArrayLike, shares: ArrayLike, label: str
) -> None:
    """Draw shares, from 0 to 1, over a grid.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from supermarket import Supermarket, fixed_point
    >>> from supermarket.experiment import plotting
    >>> figure, (ax,) = plotting.axes()
    >>> rates, choices = [0.7, 0.8, 0.9], [2, 3, 5]
    >>> shares = [[fixed_point(Supermarket(1000, d, lam), 2)[2] for lam in rates] for d in choices]
    >>> plotting.share_map(figure, ax, rates, choices, shares, "queues with two jobs or more")
    >>> plt.close(figure)
    """
    mesh = ax.pcolormesh(x, y, shares, cmap="YlGnBu", vmin=0, vmax=1)
    figure.colorbar(mesh, ax=ax, label=label)
    ax.grid(visible=False)


def rays(ax: Axes, count: int = 8) -> None:
    """Draw the lines y = x, 2 x, 3 x, ... inside the present limits of the axes.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from supermarket.experiment import plotting
    >>> figure, (ax,) = plotting.axes()
    >>> plotting.rays(ax, 3)
    >>> len(ax.lines)
    3
    >>> plt.close(figure)
    """
    limits = ax.get_xlim(), ax.get_ylim()
    for j in range(1, count + 1):
        ax.axline((0, 0), slope=j, color=THEOREM, linewidth=1)
    ax.set(xlim=limits[0], ylim=limits[1])


def _index(d: int) -> int:
    # The book's usual choices have their own; the others share the last.
    return {1: 0, 2: 1, 3: 2, 5: 3, 10: 4, 4: 5}.get(d, 6)
