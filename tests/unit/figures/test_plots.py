"""Pictures: both files, titles with units, what is left out and said, the same bytes for the same metrics."""

from __future__ import annotations

import builtins
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from gpucourse.errors import MissingError, StorageError
from gpucourse.figures.axes import short_number
from gpucourse.figures.plots import draw
from gpucourse.figures.rows import drawable
from gpucourse.model.manifest import Plot
from tests.waiting import STUCK_S

LINE: dict[str, Any] = {
    "file": "sync-time",
    "title": "What it costs",
    "kind": "line",
    "rows": "metrics.sync",
    "x": "bytes",
    "series": [{"key": "median_ms", "label": "median", "low": "p20_ms", "high": "p80_ms"}],
    "x_title": "tensor size (bytes)",
    "y_title": "sync time (ms)",
    "log_x": True,
    "log_y": True,
}
BAR: dict[str, Any] = {
    "file": "speedup",
    "title": "What they were worth",
    "kind": "bar",
    "rows": "metrics.comparison",
    "x": "case",
    "series": [{"key": "speedup", "label": "measured"}],
    "x_title": "who trains",
    "y_title": "speed-up (times)",
    "ideal_key": "ranks",
}
SYNC = {"sync": [{"bytes": 4**n, "median_ms": 0.1 * n, "p20_ms": 0.08 * n, "p80_ms": 0.2 * n} for n in range(1, 9)]}
COMPARISON = {
    "comparison": [{"case": "1 rank", "ranks": 1, "speedup": 1.0}, {"case": "2 ranks, weak", "ranks": 2, "speedup": 1.8}]
}


def texts(path: Path) -> list[str]:
    """Every text of an SVG."""
    return ["".join(node.itertext()).strip() for node in ET.parse(path).iter() if node.tag.endswith("}text")]


def lines(plot: dict[str, Any], rows: Sequence[Mapping[str, object]], folder: Path) -> list[str]:
    chosen = {**LINE, "rows": "metrics.rows", "x": "x", "series": [{"key": "y", "label": "y"}], **plot}
    draw(Plot.model_validate(chosen), {"rows": rows}, subtitle="s", folder=folder)
    return texts(folder / "sync-time.svg")


@pytest.mark.parametrize(("plot", "metrics"), [(LINE, SYNC), (BAR, COMPARISON)], ids=["line", "bar"])
def test_both_files_with_their_titles(plot: dict[str, Any], metrics: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "a folder with 'quotes'"
    png, svg = draw(Plot.model_validate(plot), metrics, subtitle="3.2 · cpu (mode: local)", folder=folder)
    assert png == folder / f"{plot['file']}.png"
    assert png.read_bytes().startswith(b"\x89PNG")
    svg_texts = texts(svg)
    assert {plot["title"], plot["x_title"], plot["y_title"], "3.2 · cpu (mode: local)"} <= set(svg_texts)
    assert sorted(path.name for path in folder.iterdir()) == sorted([png.name, svg.name]), "nothing else is left"


def test_sizes_stand_on_the_axis_as_powers_of_two(tmp_path: Path) -> None:
    _, svg = draw(Plot.model_validate(LINE), SYNC, subtitle="", folder=tmp_path)
    assert {"4 B", "1 KiB", "64 KiB"} <= set(texts(svg))


def test_bars_carry_their_values_and_their_words(tmp_path: Path) -> None:
    _, svg = draw(Plot.model_validate(BAR), COMPARISON, subtitle="", folder=tmp_path)
    assert {"1 rank", "2 ranks, weak", "1.8", "ideal", "measured"} <= set(texts(svg))


def test_bars_carry_their_spread(tmp_path: Path) -> None:
    plot = Plot.model_validate({**BAR, "series": [{"key": "speedup", "label": "measured", "low": "low", "high": "high"}]})
    _, plain = draw(plot, COMPARISON, subtitle="", folder=tmp_path / "plain")
    rows = [{"case": case, "ranks": 1, "speedup": 1.8, "low": 1.6, "high": 2.1} for case in ("a", "b")]
    _, spread = draw(plot, {"comparison": rows}, subtitle="", folder=tmp_path / "spread")
    assert ["LineCollection" in path.read_text() for path in (plain, spread)] == [False, True]


def test_large_values_over_bars_are_words_not_powers_of_ten(tmp_path: Path) -> None:
    values = (0.5873, 65_719.0, 441_600.0, 2_678_824.0)
    rows = [{"case": f"case {number}", "speedup": value} for number, value in enumerate(values)]
    draw(Plot.model_validate({**BAR, "ideal_key": None}), {"comparison": rows}, subtitle="s", folder=tmp_path)
    assert {"0.587", "65,700", "442 k", "2.68 M"} <= set(texts(tmp_path / "speedup.svg"))


def test_the_ideal_line_goes_through_the_first_point(tmp_path: Path) -> None:
    rows = [{"x": 1, "y": 10.0}, {"x": 2, "y": 18.0}, {"x": 4, "y": 30.0}]
    assert "ideal" in lines({"ideal": True, "log_x": False, "log_y": False}, rows, tmp_path)


def test_whole_numbers_stand_under_their_points_large_ones_short(tmp_path: Path) -> None:
    rows = [{"x": ranks, "y": 1.1e6 * ranks} for ranks in (1, 2, 4, 16)]
    svg_text = lines({"log_x": False, "log_y": False}, rows, tmp_path)
    assert {"1", "2", "4", "16"} <= set(svg_text)
    assert any(text.endswith(" M") for text in svg_text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (-3.5, "-3.5"),
        (1500, "1,500"),
        (99999, "99,999"),
        (250_000, "250 k"),
        (1.5e6, "1.5 M"),
        (-2e9, "-2 G"),
    ],
)
def test_numbers_under_an_axis_are_short(value: float, text: str) -> None:
    assert short_number(value) == text


def test_the_same_metrics_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        draw(Plot.model_validate(LINE), SYNC, subtitle="s", folder=tmp_path / folder)
    for name in ("sync-time.svg", "sync-time.png"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_what_is_missing_or_not_finite_is_left_out_and_said(tmp_path: Path) -> None:
    values: list[Any] = [1.0, math.nan, math.inf, "nan", None, 2.0]
    rows = [{"x": x, "y": y} for x, y in enumerate(values)]
    svg_text = lines({"log_x": False, "log_y": False}, rows, tmp_path)
    assert "4 values left out: missing, or not finite" in svg_text


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show(tmp_path: Path) -> None:
    svg_text = lines({}, [{"x": 0, "y": 1.0}, {"x": 2, "y": 0.0}, {"x": 3, "y": 2.0}, {"x": 9, "y": 4.0}], tmp_path)
    assert any(text.startswith("2 values left out") for text in svg_text)


def test_true_is_not_a_number_and_negative_values_are_shown(tmp_path: Path) -> None:
    svg_text = lines({"log_x": False, "log_y": False}, [{"x": 1, "y": True}, {"x": 2, "y": -5.0}, {"x": 3, "y": 5.0}], tmp_path)
    assert "1 value left out: missing, or not finite" in svg_text


@pytest.mark.parametrize("count", [1, 2])
def test_few_points_are_drawn_too(count: int, tmp_path: Path) -> None:
    for log in (True, False):
        lines({"log_x": log, "log_y": log}, [{"x": 5, "y": 3.0}, {"x": 6, "y": 4.0}][:count], tmp_path)


def test_words_on_the_x_axis_of_a_line(tmp_path: Path) -> None:
    rows = [{"x": "first", "y": 1.0}, {"x": "second", "y": 2.0}]
    assert {"first", "second"} <= set(lines({"log_x": False, "log_y": False}, rows, tmp_path))


@pytest.mark.parametrize(
    "metrics",
    [
        {},
        {"sync": []},
        {"sync": None},
        {"sync": "x"},
        {"sync": [{"bytes": 4}]},
        {"sync": [{"bytes": 4, "median_ms": None}]},
        {"sync": [3]},
    ],
)
def test_nothing_to_draw_is_said_and_leaves_no_file(metrics: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"the run has no metrics|has a number for median_ms"):
        draw(Plot.model_validate(LINE), metrics, subtitle="", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_text_with_markup_and_formulas_stays_text(tmp_path: Path) -> None:
    rows = [{"case": "<b>$\\frac{1}{0}$ & co", "ranks": 1, "speedup": 1.0}]
    _, svg = draw(Plot.model_validate(BAR), {"comparison": rows}, subtitle="$x_1 <i>", folder=tmp_path)
    assert {"<b>$\\frac{1}{0}$ & co", "$x_1 <i>"} <= set(texts(svg))


def test_words_from_a_script_may_hold_anything(tmp_path: Path) -> None:
    rows = [{"case": case, "ranks": 10**400, "speedup": 1.0} for case in ("a\x00b\x1b[31m", "日本 🚀", "x" * 300, "\ud800")]
    png, svg = draw(Plot.model_validate(BAR), {"comparison": rows}, subtitle="one\ntwo\x07", folder=tmp_path)
    assert "one two" in texts(svg)
    assert png.stat().st_size > 5000


def test_no_matplotlib_is_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return honest(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingError, match="matplotlib") as caught:
        draw(Plot.model_validate(LINE), SYNC, subtitle="", folder=tmp_path)
    assert "pip install" in caught.value.hint


def test_a_folder_that_takes_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write"):
        draw(Plot.model_validate(LINE), SYNC, subtitle="", folder=tmp_path / "file")


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


def test_a_home_that_takes_no_cache_and_no_word_on_the_screen(tmp_path: Path) -> None:
    """In a process of its own: matplotlib decides where its cache lies when it is imported."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/proc/nowhere",
        "XDG_CACHE_HOME": "/proc/nowhere",
        "TMPDIR": str(tmp_path),
    }
    command = [sys.executable, "-c", DRAW, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=STUCK_S, env=environment)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == ""
    assert (tmp_path / f"gpucourse-matplotlib-{os.getuid()}").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "out" / "a.svg").is_file()


def test_a_line_for_each_value_of_a_key(tmp_path: Path) -> None:
    rows = [{"layers": layers, "x": x, "y": layers * x} for layers in (2, 4) for x in (1, 2, 3)]
    svg_text = lines({"by": "layers", "series": [{"key": "y", "label": "layers"}]}, [*rows, {"layers": 4, "x": 4}], tmp_path)
    assert {"layers: 2", "layers: 4", "1 value left out: zero, missing, or not finite"} <= set(svg_text)
    assert "layers" not in svg_text


def test_a_line_of_many_points_is_not_hidden_by_its_marks(tmp_path: Path) -> None:
    def marks(count: int) -> int:
        lines({}, [{"x": x + 1, "y": x + 1} for x in range(count)], tmp_path)
        return (tmp_path / "sync-time.svg").read_text().count("<use ")

    assert marks(41) < marks(40)


def test_bars_and_ideals_are_not_drawn_by_a_key() -> None:
    for wrong in (BAR | {"by": "ranks"}, LINE | {"by": "bytes", "ideal": True}):
        with pytest.raises(ValueError, match="by is for lines without an ideal"):
            Plot.model_validate(wrong)


TWO = {"series": [{"key": "y", "label": "here"}, {"key": "z", "label": "there"}]}


@pytest.mark.parametrize("kind", ["line", "bar"])
def test_the_ideal_has_the_name_that_the_manifest_gives_it(kind: str, tmp_path: Path) -> None:
    plot = {**TWO, "kind": kind, "log_x": False, "log_y": False, "ideal_key": "link", "ideal_label": "theoretical link"}
    rows = [{"x": "a", "y": 1.0, "z": 2.0, "link": 3.0}, {"x": "b", "y": 2.0, "z": 1.0, "link": 3.0}]
    svg_text = lines(plot, rows, tmp_path)
    assert "theoretical link" in svg_text
    assert "ideal" not in svg_text
    unknown = lines(plot, [{**row, "link": None} for row in rows], tmp_path)
    assert "theoretical link" not in unknown, "where the link is not known, nothing is drawn"


def test_lines_by_a_key_share_one_ideal(tmp_path: Path) -> None:
    rows = [{"x": x, "y": y, "who": who, "link": 3.0} for who, y in (("AllReduce", 1.0), ("Broadcast", 2.0)) for x in (1, 2)]
    plot = Plot.model_validate({**LINE, "rows": "metrics.rows", "x": "x", "series": [{"key": "y", "label": "y"}],
                                "by": "who", "ideal_key": "link", "ideal_label": "link"})  # fmt: skip
    assert [point.x for point in drawable(plot, {"rows": rows}).ideal] == [1.0, 2.0]
    draw(plot, {"rows": rows}, subtitle="", folder=tmp_path)
    assert {"y: AllReduce", "y: Broadcast", "link"} <= set(texts(tmp_path / "sync-time.svg"))


def test_once_ready_a_picture_imports_nothing_more() -> None:
    ask = "import sys; from gpucourse.figures.plots import make_ready; make_ready(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert {f"matplotlib.{part}" for part in ("figure", "backends.backend_agg", "backends.backend_svg")} <= {
        *done.stdout.split()
    }


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324, 10**400, 1e100, 1e-100])
def test_a_number_that_no_axis_can_show_faults_nothing(value: float, log: bool, tmp_path: Path) -> None:
    rows = [{"x": 1, "y": 1.0}, {"x": value, "y": value}, {"x": 3, "y": 3.0}]
    assert lines({"log_x": log, "log_y": log}, rows, tmp_path)


def test_more_rows_than_a_picture_shows_are_drawn_thinner(tmp_path: Path) -> None:
    rows = [{"x": n, "y": n % 7} for n in range(400_000)]
    assert "2,000 of 400,000 rows drawn" in lines({"log_x": False, "log_y": False}, rows, tmp_path)
    words = [{"x": f"case {n}", "y": n} for n in range(3_000)]
    assert "100 of 3,000 rows drawn" in lines({"kind": "bar", "log_x": False, "log_y": False}, words, tmp_path)


def test_more_lines_than_are_told_apart_are_counted(tmp_path: Path) -> None:
    rows = [{"x": n % 2, "y": n, "who": f"{n}\x1b[31m" + "w" * 5000} for n in range(1, 101)]
    assert "76 more lines not drawn" in lines({"by": "who", "log_x": False, "log_y": False}, rows, tmp_path)
