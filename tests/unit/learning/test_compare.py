"""compare: runs of one exercise side by side."""

from __future__ import annotations

from tests.learning import FOLDER, MANIFEST, METRICS, PLOT, Learning

OWN = "/home/me/thesis/my train.py"
PLOTTED = MANIFEST.replace("    deliverables:", PLOT + "    deliverables:", 1)


def test_compare_of_two_runs_writes_table_and_chart(learning: Learning) -> None:
    learning.put(f"modules/{FOLDER}/module.yaml", PLOTTED)
    first = learning.record(parameters={"depth": 10})
    second = learning.record("1.1", METRICS | {"springs": [{"litres": 7.25, "busy_percent": 50}]}, parameters={"depth": 20})
    result = learning.types("compare", first.id, second.id)
    for words in ("depth 10", "depth 20", "2.5", "7.2", "comparison-flow.png", "mode: local"):
        assert words in result.out + result.err
    folder = learning.workspace / "deliverables" / "1.1"
    assert (folder / "comparison-flow.svg").is_file()
    page = (folder / "comparison.md").read_text()
    assert "mode: local" in page
    assert "| row 1 · litres | 1.5 | 7.2 | ? +383 % |" in page
    assert "Different settings: depth. 1 measured difference: 1 of unknown spread." in page
    assert "| row 2 · litres | 2.5 | – |" in page
    document = learning.types("compare", first.id, second.id, "--json").document
    assert document["labels"] == {first.id: "depth 10", second.id: "depth 20"}


DERIVED = MANIFEST.replace(
    "columns: [{key: litres, title: litres, digits: 1}]",
    "columns: [{key: ranks, title: ranks}, {key: median_ms, title: ms, digits: 1}, {key: rate, title: rows/s, digits: 1}, "
    "{key: speedup, title: speed-up, digits: 2}, {key: loss, title: loss, digits: 3}, {key: sent, title: bytes}, "
    "{key: depth, title: depth}]",
)


def measure(one_ms: float, two_ms: float, *, loss: float, size: int, depth: float = 0.5) -> dict[str, object]:
    """Return the metrics of a run on one rank and on two, whose steps take these times in ms, each with a spread of 20 %."""
    rows = [
        {
            "ranks": ranks, "depth": depth, "median_ms": float(ms), "p20_ms": 0.8 * ms, "p80_ms": 1.2 * ms, "rate": 1e3 / ms,
            "speedup": one_ms / ms, "loss": loss, "sent": size, "litres": 1.0, "busy_percent": 9,
        }
        for ranks, ms in ((1, one_ms), (2, two_ms))
    ]  # fmt: skip
    return METRICS | {"springs": rows}


def test_compare_marks_every_number_computed_from_times_that_overlap(learning: Learning) -> None:
    learning.put(f"modules/{FOLDER}/module.yaml", DERIVED)
    runs = [
        learning.record(metrics=measure(10, 5, loss=2.5, size=40)).id,
        learning.record(metrics=measure(12, 10, loss=3.5, size=50)).id,
    ]
    output = learning.types("compare", *runs).out
    lines = {line.partition("  ")[0]: line for line in output.splitlines() if " · " in line}
    assert "≈ +20 %" in lines["ranks 1 · ms"]
    assert "≈ -16.7 %" in lines["ranks 1 · rows/s"]
    assert lines["ranks 2 · ms"].endswith("  +100 %"), "5 and 10 ms are further apart than both spreads"
    assert lines["ranks 2 · rows/s"].endswith("  -50 %")
    assert "≈ -40 %" in lines["ranks 2 · speed-up"], "1.33 to 3 times and 0.8 to 1.8 times overlap"
    assert "? +40 %" in lines["ranks 2 · loss"]
    assert lines["ranks 2 · bytes"].endswith("  +25 %"), "a count"
    assert "? the spread was not measured" in output
    assert "≈ may be noise: the runs' own spreads (p20 to p80) overlap" in " ".join(output.split())


def test_compare_of_equal_settings_says_that_differences_are_noise(learning: Learning) -> None:
    learning.put(f"modules/{FOLDER}/module.yaml", DERIVED)
    runs = [learning.record(metrics=measure(ms, 5, loss=2.5, size=40)).id for ms in (10, 12)]
    output = " ".join(learning.types("compare", *runs).out.split())
    assert "The settings are the same in all runs. 3 measured differences: 3 that may be noise. They come from noise" in output
    assert " Next: gpucourse " in output


def test_compare_of_other_settings_names_the_command_that_shows_the_noise(learning: Learning) -> None:
    learning.put(f"modules/{FOLDER}/module.yaml", DERIVED)
    runs = [
        learning.record(metrics=measure(ms, 5, loss=2.5, size=depth, depth=0.1 * depth), parameters={"depth": depth}).id
        for ms, depth in ((10, 10), (12, 20))
    ]
    output = " ".join(learning.types("compare", *runs).out.split())
    assert "Different settings: depth. 3 measured differences: 3 that may be noise." in output
    assert "Repeat a run, and compare: gpucourse run 1.1 --set depth=20 Next: gpucourse " in output


def test_compare_of_three_runs_says_how_far_each_is_from_the_first(learning: Learning) -> None:
    runs = [
        learning.record("1.1", METRICS | {"springs": [{"litres": litres, "busy_percent": 1}]}).id for litres in (2.0, 3.0, 2.0)
    ]
    (line,) = [line for line in learning.types("compare", *runs).out.splitlines() if "row 1" in line]
    assert line.split() == ["row", "1", "·", "litres", "2.0", "3.0", "(?", "+50", "%)", "2.0"]


def test_compare_of_runs_of_one_own_script(learning: Learning) -> None:
    first = learning.record(metrics={"steps_per_s": 100.0, "loss": 2.5}, own_script=OWN, environment={"LR": "1"})
    second = learning.record(metrics={"steps_per_s": 150.0, "loss": 2.5}, own_script=OWN, environment={"LR": "2"})
    result = learning.types("compare", first.id, second.id)
    assert "my train.py your own script, compared" in result.out
    row = next(line for line in result.out.splitlines() if "steps_per_s" in line)
    assert row.split() == ["steps_per_s", "100", "150", "?", "+50", "%"]
    assert "--env LR" in result.out
    assert "Saved" not in result.out
    assert learning.types("compare", first.id, second.id, "--json").document["exercise"] == "my train.py"
    foreign_run = learning.record(own_script="other.py")
    assert (
        "ran my train.py, a script of your own, but another run did not"
        in learning.types("compare", first.id, foreign_run.id, code=2).err
    )
    assert not (learning.workspace / "deliverables").exists()


def test_compare_distinguishes_own_scripts_of_one_name(learning: Learning) -> None:
    first = learning.record(metrics={"loss": 2.5}, own_script="/home/me/a/train.py")
    second = learning.record(metrics={"loss": 2.0}, own_script="/home/me/b/train.py")
    listing = learning.types("runs").out
    assert "a/train.py" in listing
    assert "b/train.py" in listing
    output = learning.types("compare", first.id, second.id).out
    assert "train.py 2 scripts of your own with the same name, compared" in output
    assert f"{first.id} script a/train.py" in " ".join(output.split())
    assert "a/train.py has 1 good run" in learning.types("compare", "a/train.py", code=2).err
    assert "/home/me/b/train.py" in learning.types("show", "train.py", "--run", second.id).out
