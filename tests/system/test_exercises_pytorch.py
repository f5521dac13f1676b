"""The exercises of module 5 that are training loops, as a learner runs them, judged by the checks of their own manifest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.system.exercising import (
    Finished,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    read_finished,
    replace_words,
    start,
    wait,
    with_a_gpu,
    with_faults,
)

pytestmark = [pytest.mark.system, needs_torch]

FOLDER = Path(__file__).parents[2] / "exercises/05-gpu-programming"
SMALL_LOOP = {"steps": "10", "hidden": "64"}


def read_change(name: str) -> tuple[str, str, str]:
    """A part as it is delivered and its solution, for `with_faults`."""
    return name, (FOLDER / name).read_text(encoding="utf-8"), (FOLDER / "solutions" / name).read_text(encoding="utf-8")


# --- 5.2 ---------------------------------------------------------------------------------------------------------------


def test_the_loop_as_delivered_runs_and_is_found_wanting(tmp_path: Path) -> None:
    run = with_faults("5.2", tmp_path / "work", **SMALL_LOOP)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"runs-anywhere", "no-syncs", "mixed"}
    assert list_unanswered(run).keys() == {"runs-anywhere", "no-syncs", "mixed", "copies-do-not-block"}
    assert "nothing was moved: device is meta, and the model computed on cpu" in run.output
    assert run.metrics["training_state_mb"] == pytest.approx(16 * (64**2 + 76 * 64 + 10) / 1e6, rel=0.001)
    assert (tmp_path / "work/profile.txt").stat().st_size > 0
    assert 0 < (tmp_path / "work/trace.json.gz").stat().st_size < 5 << 20


@pytest.fixture(scope="module")
def good_loop(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return with_faults("5.2", tmp_path_factory.mktemp("loop") / "a node's work", read_change("my_loop.py"), **SMALL_LOOP)


def test_the_rewritten_loop_passes_every_check_of_a_cpu(good_loop: Finished, tmp_path: Path) -> None:
    assert good_loop.code == 0, good_loop.output
    assert list_unanswered(good_loop) == {}
    assert good_loop.metrics["unscaled_zero_gradient_percent"] > 5
    assert good_loop.metrics["scaled_zero_gradient_percent"] < 0.1
    assert (good_loop.metrics["moves"], good_loop.metrics["moves_blocking"]) == (4, 0), "x and y of two steps, the first aside"
    assert (good_loop.metrics["gpu_busy_percent"], good_loop.metrics["speedup"]) == (None, None)
    check_plots_and_tables(good_loop, tmp_path)


def test_a_loop_that_stops_is_shown_and_the_run_goes_on(tmp_path: Path) -> None:
    change = ("my_loop.py", "    optimizer = torch.optim.AdamW(", "    optimizer = torch.optim.AdmaW(")
    run = with_faults("5.2", tmp_path / "work", change, **SMALL_LOOP)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"loop-runs", "runs-anywhere"}
    assert "my_loop.py, line 33" in run.output


@pytest.mark.slow
def test_the_loop_on_a_gpu_says_what_the_gpu_did(tmp_path: Path) -> None:
    exercise, script = lay_out("5.2", tmp_path / "work")
    (script.parent / "my_loop.py").write_text(read_change("my_loop.py")[2].replace(".pin_memory()", ""), encoding="utf-8")
    words = [sys.executable, script.name, *flags(exercise, **SMALL_LOOP, precision="float16")]
    process = start(words, script.parent, with_a_gpu(script.parent))
    output = wait(process)
    assert process.returncode == 0, output
    metrics = read_finished(exercise, 0, output, script.parent, 1).metrics
    assert {row["way"]: row["device"] for row in metrics["runs"]} == {
        "as delivered": "cpu",
        "yours, float32": "cuda",
        "yours, float16": "cuda",
    }
    assert metrics["runs"][1]["peak_gpu_memory_bytes"] == 1 << 20
    assert metrics["speedup"] > 0


def test_too_few_steps_are_refused_with_the_rule(tmp_path: Path) -> None:
    exercise, script = lay_out("5.2", tmp_path / "work")
    process = start([sys.executable, script.name, "--steps=4"], script.parent, environment(script.parent))
    assert "--steps must be at least 5" in wait(process)
    assert (process.returncode, exercise.parameter("steps").min) == (2, 5)  # type: ignore[union-attr]


# --- 5.9 ---------------------------------------------------------------------------------------------------------------

SHORT = {"samples": "32", "rounds": "1"}
FASTER = {"fast", "no-looks", "no-float64", "nothing-kept", "no-copies", "faults-gone"}


UNREAD = [
    ("slow_training.py", "ablation = repair_one_by_one()", 'ablation = [{"fault": 1, "alone_repaired": 1.0}]'),
    ("slow_training.py", 'busy_before = write_profile(train_delivered, "profile-before.txt")', "busy_before = None"),
    ("slow_training.py", "busy = write_profile(train_delivered if broken", "busy = None and (train_delivered if broken"),
]
"""No ablation and no profiles, which take most of a run: for tests that look at neither."""


@pytest.mark.slow
def test_the_training_as_delivered_is_right_and_slow(tmp_path: Path) -> None:
    run = with_faults("5.9", tmp_path / "work", **SHORT)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == FASTER
    values = run.metrics
    assert (values["losses_off"], values["weights_off"], values["samples_off"]) == (0, 0, 0)
    assert (values["faults_gone"], [row["gone"] for row in values["faults"]]) == (0, [False] * 8)
    assert values["values_read_delivered"] == pytest.approx(1 + 32 * 11, rel=0.001)
    assert "function calls" in (tmp_path / "work/profile-before.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_repaired_training_is_faster(tmp_path: Path) -> None:
    """How many times as fast it is depends on what else this computer does."""
    run = with_faults("5.9", tmp_path / "work", read_change("my_training.py"), samples="1024", rounds="1")
    assert run.code == 0, run.output
    assert list_unanswered(run).keys() <= {"fast"}
    assert run.metrics["faults_gone"] == 8
    assert run.metrics["speedup"] > 1
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_a_training_of_fewer_samples_gets_no_score(tmp_path: Path) -> None:
    name, delivered, solution = read_change("my_training.py")
    cheat = solution.replace("out = model(x[chosen])", "chosen = chosen[:4]\n            out = model(x[chosen])")
    run = with_faults("5.9", tmp_path / "work", (name, delivered, cheat), *UNREAD, **SHORT)
    assert list_failed_checks(run) >= {"same-losses", "same-weights", "every-sample"}
    assert run.metrics["score"] == "none: other results"


@pytest.mark.slow
def test_a_timed_training_without_the_model_has_no_speed(tmp_path: Path) -> None:
    name, delivered, solution = read_change("my_training.py")
    cheat = solution.replace("out = model(x[chosen])", "out = model.forward(x[chosen])")
    run = with_faults("5.9", tmp_path / "work", (name, delivered, cheat), *UNREAD, **SHORT)
    assert run.code == 0, run.output
    assert "training-runs" in list_failed_checks(run)
    assert "called the model 0 times" in run.metrics["training_broken"]
    assert run.metrics["speedup"] is None


def test_samples_that_fill_no_batch_are_refused_with_the_rule(tmp_path: Path) -> None:
    _, script = lay_out("5.9", tmp_path / "work")
    process = start([sys.executable, script.name, "--samples=100"], script.parent, environment(script.parent))
    assert "--samples must be a multiple of 32" in wait(process)
    assert process.returncode == 2


@pytest.mark.slow
def test_the_training_on_a_gpu_says_what_blocks(tmp_path: Path) -> None:
    exercise, script = lay_out("5.9", tmp_path / "work")
    replace_words(script.parent, UNREAD)
    process = start([sys.executable, script.name, *flags(exercise, **SHORT)], script.parent, with_a_gpu(script.parent))
    output = wait(process)
    assert process.returncode == 0, output
    metrics = read_finished(exercise, 0, output, script.parent, 1).metrics
    assert metrics["blocking_moves_per_step"] is not None
    assert metrics["speedup"] > 0
