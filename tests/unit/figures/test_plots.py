"""Pictures: both files, their titles, the same bytes for the same metrics."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from matplotlib import rc_context
from matplotlib.collections import LineCollection
from matplotlib.text import Text

from gpucourse.errors import MissingError
from gpucourse.figures import plots
from gpucourse.figures.plots import draw
from gpucourse.figures.rows import Drawable, drawable
from gpucourse.figures.style import STYLE
from gpucourse.model.manifest import Plot
from tests.waiting import STUCK_S

LINE: dict[str, Any] = {
    "file": "sync-time", "title": "What it costs", "kind": "line", "rows": "metrics.sync", "x": "bytes",
    "series": [{"key": "median_ms", "label": "median", "low": "p20_ms", "high": "p80_ms"}], "x_title": "tensor size (bytes)",
    "y_title": "sync time (ms)", "log_x": True, "log_y": True,
}  # fmt: skip
BAR: dict[str, Any] = {
    "file": "speedup", "title": "What they were worth", "kind": "bar", "rows": "metrics.comparison", "x": "case",
    "series": [{"key": "speedup", "label": "measured"}], "x_title": "who trains", "y_title": "speed-up (times)",
    "ideal_key": "ranks",
}  # fmt: skip
SYNC = {"sync": [{"bytes": 4**n, "median_ms": 0.1 * n, "p20_ms": 0.08 * n, "p80_ms": 0.2 * n} for n in range(1, 9)]}
COMPARISON = {
    "comparison": [{"case": "1 rank", "ranks": 1, "speedup": 1.0}, {"case": "2 ranks, weak", "ranks": 2, "speedup": 1.8}]
}


def texts(path: Path) -> list[str]:
    """Return every text of an SVG."""
    return ["".join(node.itertext()).strip() for node in ET.parse(path).iter() if node.tag.endswith("}text")]


def compose(plot: Plot, data: Drawable) -> Any:
    """Return the figure of a plot, laid out but neither drawn nor stored."""
    with rc_context(STYLE):
        figure = plots._figure(plot, data, "1.1, simulated nodes (mode: local)")
        for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
            axis.get_ticklabels()  # which writes them
    return figure


def list_texts(figure: Any) -> list[str]:
    """Return every line of the texts of a figure."""
    return [line for text in figure.findobj(Text) for line in text.get_text().splitlines()]


def show(plot: dict[str, Any], metrics: Mapping[str, object]) -> list[str]:
    """Return every text of the picture of a plot."""
    model = Plot.model_validate(plot)
    return list_texts(compose(model, drawable(model, metrics)))


def lines(plot: dict[str, Any], rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return every text of a plot of lines."""
    return show({**PLAIN, **plot}, {"rows": rows})


PLAIN: dict[str, Any] = {
    **LINE,
    "rows": "metrics.rows",
    "x": "x",
    "series": [{"key": "y", "label": "y"}],
    "log_x": False,
    "log_y": False,
}


def test_draw_writes_both_files_with_their_titles_and_the_same_bytes_again(tmp_path: Path) -> None:
    plot, folders = Plot.model_validate(LINE), (tmp_path / "a folder with 'quotes'", tmp_path / "again")
    first, second = (draw(plot, SYNC, subtitle="3.2 · cpu (mode: local)", folder=folder) for folder in folders)
    assert [path.name for path in first] == ["sync-time.png", "sync-time.svg"]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert {plot.title, plot.x_title, plot.y_title, "3.2 · cpu (mode: local)"} <= set(texts(first[1]))
    assert sorted(folders[0].iterdir()) == first, "nothing else is left"
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_bars_show_their_values_words_and_ideals() -> None:
    assert {"1 rank", "2 ranks, weak", "1.8", "ideal", "measured"} <= set(show(BAR, COMPARISON))


def test_bars_show_their_spread() -> None:
    plot = Plot.model_validate({**BAR, "series": [{"key": "speedup", "label": "measured", "low": "low", "high": "high"}]})
    rows = [{"case": case, "ranks": 1, "speedup": 1.8, "low": 1.6, "high": 2.1} for case in ("a", "b")]
    figures = [compose(plot, drawable(plot, metrics)) for metrics in (COMPARISON, {"comparison": rows})]
    assert [bool(figure.findobj(LineCollection)) for figure in figures] == [False, True]


def test_bars_show_large_values_as_words() -> None:
    values = (0.5873, 65_719.0, 441_600.0, 2_678_824.0)
    rows = [{"case": f"case {number}", "speedup": value} for number, value in enumerate(values)]
    assert {"0.587", "65,700", "442 k", "2.68 M"} <= set(show({**BAR, "ideal_key": None}, {"comparison": rows}))


@pytest.mark.parametrize(("value", "log"), [(1e308, False), (5e-324, True), (10**400, True), (6, True)])
def test_draw_accepts_few_points_and_numbers_that_no_axis_can_show(value: float, log: bool, tmp_path: Path) -> None:
    plot = Plot.model_validate({**PLAIN, "log_x": log, "log_y": log})
    rows = [{"x": 1, "y": 1.0}, {"x": value, "y": value}]
    assert draw(plot, {"rows": rows}, subtitle="s", folder=tmp_path)


def test_draw_shows_words_with_any_characters_as_text(tmp_path: Path) -> None:
    words = ("<b>$\\frac{1}{0}$ & co", "a\x00b\x1b[31m", "日本 🚀", "x" * 300, "\ud800")
    rows = [{"case": case, "ranks": 10**400, "speedup": 1.0} for case in words]
    _, svg = draw(Plot.model_validate(BAR), {"comparison": rows}, subtitle="$x_1 <i>\ntwo\x07", folder=tmp_path)
    assert {"<b>$\\frac{1}{0", "}$ & co", "$x_1 <i> two"} <= set(texts(svg)), "long words are broken, and no formula is set"


def test_draw_names_matplotlib_if_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return honest(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingError, match="matplotlib") as caught:
        draw(Plot.model_validate(LINE), SYNC, subtitle="", folder=tmp_path)
    assert "pip install" in caught.value.hint


DRAW = """
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from gpucourse.figures.plots import draw
from gpucourse.model.manifest import Plot
assert "matplotlib" not in sys.modules
plot = Plot.model_validate({"file": "a", "title": "t", "kind": "line", "rows": "metrics.r", "x": "x",
    "x_title": "x", "y_title": "y", "series": [{"key": "y", "label": "y"}]})
draw(plot, {"r": [{"x": 1, "y": 1}]}, subtitle="", folder=Path(sys.argv[1]))
assert "matplotlib.pyplot" not in sys.modules
"""


def test_draw_prints_nothing_if_the_home_cannot_hold_a_cache(tmp_path: Path) -> None:
    """This runs in a separate process, because matplotlib chooses its cache folder when it is imported."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/proc/nowhere",
        "XDG_CACHE_HOME": "/proc/nowhere",
        "TMPDIR": str(tmp_path),
    }
    command = [sys.executable, "-c", DRAW, str(tmp_path / "out")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=STUCK_S, env=environment)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    assert result.stderr == ""
    assert (tmp_path / "out" / "a.svg").is_file()


def test_lines_of_many_points_have_no_marks() -> None:
    plot = Plot.model_validate(PLAIN)
    rows = [{"x": x + 1, "y": x + 1} for x in range(41)]
    markers = [compose(plot, drawable(plot, {"rows": rows[:count]})).axes[0].lines[0].get_marker() for count in (40, 41)]
    assert [marker != "None" for marker in markers] == [True, False]
    plot = plot.model_copy(update={"connect": False})
    assert compose(plot, drawable(plot, {"rows": rows})).axes[0].lines[0].get_marker() != "None", "points without a line"


@pytest.mark.parametrize("kind", ["line", "bar"])
def test_draw_of_an_ideal_has_the_label_of_the_manifest(kind: str) -> None:
    series = [{"key": "y", "label": "here"}, {"key": "z", "label": "there"}]
    plot = {"series": series, "kind": kind, "ideal_key": "link", "ideal_label": "theoretical link"}
    rows = [{"x": "a", "y": 1.0, "z": 2.0, "link": 3.0}, {"x": "b", "y": 2.0, "z": 1.0, "link": 3.0}]
    labels = lines(plot, rows)
    assert "theoretical link" in labels
    assert "ideal" not in labels
    unknown = lines(plot, [{**row, "link": None} for row in rows])
    assert "theoretical link" not in unknown, "nothing is drawn if the link is not known"
