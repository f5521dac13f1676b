"""The exercises of module 1 as a learner runs them, with real processes, judged by the checks of their own manifest."""

from __future__ import annotations

import re
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.parts import needs_module
from tests.system.exercising import (
    check_healthy,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_open_checks,
    needs_torch,
    run_exercise,
    start,
    wait,
)
from tests.waiting import until

pytestmark = [pytest.mark.system, needs_torch]
needs_transformers = needs_module("transformers")
needs_psutil = needs_module("psutil")

BRIEFLY = {"with": "1.1", "seconds": "0.4", "hz": "20"}


@pytest.mark.slow
def test_products_of_two_sizes_are_timed_and_a_processor_has_no_peak(tmp_path: Path) -> None:
    run = run_exercise("1.1", tmp_path / "work", small="64", size="256", repeats="3")
    check_healthy(run, tmp_path, open_checks={"your-timer"})
    values = run.metrics
    assert [row["what"] for row in values["rows"]] == 2 * [
        "first call", "warm", "warm, with copies (pageable memory)", "warm",
    ]  # fmt: skip
    assert [row["bytes"] for row in values["allocations"]] == [3 * 64 * 64 * 4, 3 * 256 * 256 * 4]
    for row in values["rows"]:
        assert row["gflop_per_s"] == pytest.approx(2 * row["size"] ** 3 / row["median_ms"] / 1e6, rel=1e-3)
        assert row["percent_of_peak"] is None, "no data sheet is behind this computer's processor"
    assert min(row["copies_ms"] for row in values["speedups"]) > 0, "timed alone, and not as a difference of two times"


@pytest.mark.slow
@needs_transformers
def test_an_engine_answers_and_its_times_are_the_clients(tmp_path: Path) -> None:
    run = run_exercise("1.2", tmp_path / "work", solved=True, max_tokens="20", prompt="def forward(self, x):")
    check_healthy(run, tmp_path)
    *_, loop = run.metrics["requests_of_all"]
    assert (loop["what"], loop["computed"]) == ("decoding, yours", run.metrics["prompt_tokens"] + 20 - 1)
    assert [(row["tokens"], row["requests"]) for row in run.metrics["rows"]] == [(20, 1), (20, 5), (10, 5)]
    for row in run.metrics["rows"]:
        assert row["ttft_ms"] < row["e2e_ms"]
        assert row["tok_per_s"] < row["ceiling_tok_per_s"]
    assert (tmp_path / "work/generated.txt").read_text(encoding="utf-8").startswith("def forward(self, x):")


UNREACHABLE = "We couldn't connect to 'https://hub.invalid' to load the files, and couldn't find them in the cached files."


@pytest.mark.slow
@needs_transformers
@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("SystemExit('no room for the cache')", ("the engine ended with code 1", "no room for the cache")),
        (f'OSError("{UNREACHABLE}")', ("gpt2 has to be downloaded (openai-community/gpt2)", "--set model=tiny")),
    ],
    ids=["ended", "no network"],
)
def test_an_engine_that_does_not_start_is_reported_with_the_reason(error: str, words: tuple[str, ...], tmp_path: Path) -> None:
    change = ("serve.py", "import language_models\n", f"raise {error}\n")
    run = run_exercise("1.2", tmp_path / "work", change, model="gpt2")  # so that no tiny model has to be made first
    assert run.code == 1
    assert [word for word in words if word not in run.output] == []


@pytest.mark.slow
@needs_transformers
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["asked to end", "killed"])
def test_an_engine_ends_with_its_script(number: signal.Signals, tmp_path: Path) -> None:
    """End the script. An engine that outlives it would keep the GPU of the next exercise."""
    exercise, script = lay_out("1.2", tmp_path / "work")
    env = environment(script.parent) | {"TMPDIR": str(tmp_path)}  # a killed script cannot clean up
    process = start([sys.executable, script.name, *flags(exercise, max_tokens="512")], script.parent, env)
    log = script.parent / "engine.log"
    port = until(lambda: log.is_file() and re.search(r"at port (\d+)", log.read_text(encoding="utf-8")))
    process.send_signal(number)
    wait(process)
    until(lambda: not is_open(int(port[1])))


def is_open(port: int) -> bool:
    """Return whether a server answers at a port of this computer."""
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@needs_psutil
def test_loads_and_another_exercise_are_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    run = run_exercise("1.3", folder, solved=True, **BRIEFLY)
    assert run.code == 0, run.output
    assert set(list_open_checks(run)) <= {"on-time", "every-load"}, "how often it looks is the busy computer's choice"
    values = run.metrics
    assert [row["phase"] for row in values["phases"]] == ["idle", "copying", "arithmetic", "busywork", "exercise 1.1"]
    assert all(sample["power_w"] is None for sample in values["samples"]), "no processor's power passes for a GPU's"
    times = [sample["at_s"] for sample in values["samples"]]
    assert run.metrics["readings"][-1]["phase"] == "all, yours"
    assert (folder / "watched-1.1" / "metrics.json").is_file(), "the watched exercise keeps its own record"
    assert len((folder / "samples.csv").read_text(encoding="utf-8").splitlines()) == len(times) + 1
    check_plots_and_tables(run, tmp_path)


def test_memory_as_delivered_is_right_and_the_fix_is_open(tmp_path: Path) -> None:
    run = run_exercise("1.4", tmp_path / "work", size="1000", budget_mib="64")
    check_healthy(run, tmp_path, open_checks={"fix-runs", "fix-fits", "fix-whole", "fix-right", "fix-shared"})
    values = run.metrics
    first = values["timeline"][0]
    assert (first["allocated_mib"], first["reserved_mib"], first["driver_mib"]) == (0, 0, 16), "the driver knows the context"
    assert values["steps_that_fitted"] == (64 - 16) * 2**20 // (4 * 1000 * 1000 + 384) == 12
    assert values["capacity_bytes"] // values["tensor_bytes"] > values["steps_that_fitted"], "total is not free"
    assert values["held_by_error_bytes"] > 0, "the caught error held what the frames held"
