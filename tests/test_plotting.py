"""One figure style: what a reader of one figure learns holds in the next."""

import io

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from supermarket.estimate.intervals import Interval
from supermarket.experiment import plotting

USUAL = (1, 2, 3, 5)


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        plt.switch_backend("agg")
        plotting.use_style()
        yield
        plt.close("all")


def drawn(figure):
    """Return the figure as it is saved, shape (height, width, 4), from 0 to 1."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    picture.seek(0)
    return plt.imread(picture)


def test_the_background_is_opaque_white():
    figure, (ax,) = plotting.axes()
    ax.plot([0, 1], [0, 1])
    pixels = drawn(figure)
    assert np.all(pixels[..., 3] == 1)
    np.testing.assert_array_equal(pixels[0, 0], 1)
    assert np.mean(np.all(pixels[..., :3] == 1, axis=-1)) > 0.7


def test_figures_fit_the_page_and_grow_with_their_rows():
    one, _ = plotting.axes()
    width, height = one.get_size_inches()
    assert width == pytest.approx(7)
    tall, axes = plotting.axes(rows=3, sharex=True)
    assert tall.get_size_inches() == pytest.approx([width, 3 * height])
    assert axes.shape == (3,)
    assert plotting.axes()[1].shape == (1,)
    assert axes[0].get_shared_x_axes().joined(axes[0], axes[2])


def test_nothing_is_cut_off():
    figure, (ax,) = plotting.axes()
    ax.set(xlabel="queue length k", ylabel="share of queues\nwith at least k jobs", title="title")
    figure.canvas.draw()
    inside = figure.bbox
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        box = text.get_window_extent()
        assert inside.x0 <= box.x0 <= box.x1 <= inside.x1
        assert inside.y0 <= box.y0 <= box.y1 <= inside.y1


def test_usual_choices_have_colours_and_markers_of_their_own():
    assert len({plotting.colour(d) for d in USUAL}) == len(USUAL)
    assert len({plotting.marker(d) for d in USUAL}) == len(USUAL)
    others = range(4, 200)
    kept = {plotting.colour(d) for d in USUAL}
    assert not kept & {plotting.colour(d) for d in others if d not in USUAL}
    assert to_rgb(plotting.THEOREM) == (0, 0, 0)


def test_every_number_of_choices_has_one_colour_and_marker():
    for d in (*range(1, 300), 10**6, np.int64(3)):
        assert to_hex(plotting.colour(d)).upper() == plotting.colour(d)
        assert plotting.colour(d) == plotting.colour(int(d))
        assert isinstance(plotting.marker(d), str)
    assert plotting.colour(np.int64(3)) == plotting.colour(3)
    # Colour is never the only sign: different colours come with different markers.
    signs = {(plotting.colour(d), plotting.marker(d)) for d in range(1, 300)}
    assert len(signs) == len({c for c, _ in signs}) == len({m for _, m in signs})


def bars(container):
    """Return the points of an errorbar, and of each bar the ends that are drawn."""
    line, _, (collection,) = container.lines
    return line, [np.reshape(ends, (-1, 2)) for ends in collection.get_segments()]


def test_a_measurement_is_points_with_intervals():
    figure, (ax,) = plotting.axes()
    interval = Interval(
        np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.9, 3.0]), np.array([1.1, 2.4, 3.0]), 0.95
    )
    plotting.measured(ax, [10, 20, 30], interval, 2, "d = 2")
    (container,) = ax.containers
    line, ends = bars(container)
    np.testing.assert_allclose(line.get_xydata(), [[10, 1], [20, 2], [30, 3]])
    assert line.get_linestyle() == "None"
    assert line.get_marker() == plotting.marker(2)
    assert to_hex(line.get_color()).upper() == plotting.colour(2)
    np.testing.assert_allclose([bar[0, 1] for bar in ends], interval.low)
    np.testing.assert_allclose([bar[1, 1] for bar in ends], interval.high)
    assert ax.get_legend_handles_labels()[1] == ["d = 2"]
    drawn(figure)


def test_a_measurement_without_a_label_is_not_in_the_legend():
    _, (ax,) = plotting.axes()
    plotting.measured(ax, [1.0], Interval(np.ones(1), np.ones(1), np.ones(1), 0.95), 1)
    assert ax.get_legend_handles_labels()[1] == []


def test_a_refused_interval_is_a_point_without_a_bar():
    figure, (ax,) = plotting.axes()
    interval = Interval(
        np.array([1.0, 2.0]), np.array([0.5, np.nan]), np.array([1.5, np.nan]), 0.95
    )
    plotting.measured(ax, [1, 2], interval, 3)
    line, ends = bars(ax.containers[0])
    np.testing.assert_allclose(line.get_ydata(), [1, 2])
    assert [len(bar) for bar in ends if len(bar) > 1] == [2]
    drawn(figure)


def test_part_of_the_levels_can_be_drawn():
    _, (ax,) = plotting.axes()
    ends = np.arange(5.0)
    plotting.measured(ax, [7, 8], Interval(ends, ends - 1, ends + 2, 0.95), 2, index=slice(1, 3))
    line, drawn_bars = bars(ax.containers[0])
    np.testing.assert_allclose(line.get_xydata(), [[7, 1], [8, 2]])
    np.testing.assert_allclose(drawn_bars[1][:, 1], [1, 4])
    plotting.measured(ax, [7], Interval(ends, ends - 1, ends + 2, 0.95), 2, index=[4])
    np.testing.assert_allclose(bars(ax.containers[1])[0].get_xydata(), [[7, 4]])


def test_one_measurement_can_be_drawn():
    _, (ax,) = plotting.axes()
    plotting.measured(ax, 3.0, Interval(0.5, 0.25, 1.0, 0.95), 2)
    line, (bar,) = bars(ax.containers[0])
    np.testing.assert_allclose(line.get_xydata(), [[3, 0.5]])
    np.testing.assert_allclose(bar[:, 1], [0.25, 1.0])


def test_an_interval_on_another_scale():
    interval = Interval(np.array([2.0, 4.0]), np.array([1.0, 2.0]), np.array([4.0, 8.0]), 0.9)
    doubled = plotting.transformed(interval, np.log2)
    np.testing.assert_allclose([doubled.low, doubled.estimate, doubled.high],
                               [[0, 1], [1, 2], [2, 3]])  # fmt: skip
    assert doubled.confidence == 0.9
    turned = plotting.transformed(interval, lambda x: 1 / x)
    np.testing.assert_allclose([turned.low, turned.estimate, turned.high],
                               [[0.25, 0.125], [0.5, 0.25], [1, 0.5]])  # fmt: skip
    refused = Interval(np.array([2.0]), np.array([np.nan]), np.array([np.nan]), 0.9)
    assert np.isnan(plotting.transformed(refused, np.log).low).all()
    # An end at 0 is infinitely far down, without a warning.
    assert plotting.transformed(Interval(1.0, 0.0, 2.0, 0.9), np.log).low == -np.inf


def test_an_end_off_the_scale_does_not_become_the_other_end():
    interval = plotting.transformed(Interval(0.1, -0.1, 0.3, 0.9), np.log)
    assert not interval.low > interval.estimate


def test_maps_name_what_their_colours_mean():
    figure, (ax,) = plotting.axes()
    levels = np.array([[1, 2], [4, 2]])
    plotting.levels_map(ax, [0.25, 0.75], [0.25, 0.75], levels)
    (mesh,) = ax.collections
    assert sorted(text.get_text() for text in ax.texts) == ["1", "2", "4"]
    one = next(text for text in ax.texts if text.get_text() == "4")
    assert one.get_position() == (0.25, 0.75)
    rgba = mesh.to_rgba(mesh.get_array()).reshape(4, 4)
    assert len({tuple(colour) for colour in rgba}) == 3
    assert np.array_equal(rgba[1], rgba[3])  # both are 2
    figure, (ax,) = plotting.axes()
    plotting.share_map(figure, ax, [0.25, 0.75], [0.25, 0.75], [[0.2, 0.4], [0.5, 0.3]], "share")
    assert ax.collections[0].get_clim() == (0, 1)
    assert figure.axes[1].get_ylabel() == "share"
    drawn(figure)


def test_rays_leave_the_limits_alone():
    figure, (ax,) = plotting.axes()
    ax.plot([0.3, 0.5], [0.6, 1.0], "o")
    limits = ax.get_xlim(), ax.get_ylim()
    plotting.rays(ax, 4)
    assert (ax.get_xlim(), ax.get_ylim()) == limits
    assert [line.get_slope() for line in ax.lines[1:]] == [1, 2, 3, 4]
    assert {to_rgb(line.get_color()) for line in ax.lines[1:]} == {(0, 0, 0)}
    drawn(figure)


def test_rounding_never_makes_a_bar_of_negative_length():
    _, (ax,) = plotting.axes()
    estimate = np.array([0.1])
    plotting.measured(ax, [1], Interval(estimate, estimate + 1e-17, estimate, 0.95), 1)


def test_the_style_can_be_set_again():
    before = dict(mpl.rcParams)
    plotting.use_style()
    assert dict(mpl.rcParams) == before


def test_an_axis_out_of_all_bounds_is_noted_and_a_good_one_is_not(monkeypatch, tmp_path):
    monkeypatch.setattr(plotting, "faults", [])
    with mpl.rc_context():
        plotting.use_style()
        for draw, values in [
            ("plot", [1e11, 0.0]), ("loglog", [1e20, 1.0]), ("semilogy", [1e-150, 1.0]),
        ]:  # fmt: skip
            figure, (ax,) = plotting.axes()
            getattr(ax, draw)([1.0, 2.0], values)
            figure.savefig(tmp_path / "good.png")
        assert plotting.faults == []
        for values in ([1e150, 0.0], [-2e12, 0.0]):
            figure, ax = plt.subplots()  # as pages do that need another grid
            ax.plot([1.0, 2.0], values)
            ax.set_title("q")
            figure.savefig(tmp_path / "bad.png")
            figure.savefig(tmp_path / "bad.png")
            assert plotting.faults.pop().startswith("q: an axis goes from ")
            assert plotting.faults == []
    plt.close("all")
