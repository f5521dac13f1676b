"""The exercises of module 5 as a learner runs them, with real processes, judged by the checks of their own manifest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.system.exercising import (
    by_command_line,
    check_plots_and_tables,
    environment,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    on_cpu,
    start,
    wait,
    with_faults,
)

pytestmark = [pytest.mark.system, needs_torch]


@pytest.fixture(scope="module")
def programming(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Somebody with module 5 up."""
    learner = Learner(tmp_path_factory.mktemp("programming"))
    learner.types("deploy", "5")
    yield learner
    learner.types("destroy", "--all", "--yes", "--discard", "--quiet")


# --- 5.8 ---------------------------------------------------------------------------------------------------------------

FEW = {"signals": "64", "batch_sizes": "1,16"}
OF_THE_FILTER = {"fast-length", "template-once", "in-batches", "faster"}  # what is wrong with it as delivered


def test_a_filter_is_right_and_slow_as_it_is_delivered(programming: Learner, tmp_path: Path) -> None:
    run, _ = by_command_line(programming, "5.8", **FEW)
    assert run.code == 0, run.output
    assert set(list_unanswered(run)) == OF_THE_FILTER
    assert on_cpu(run) == {"beats-cpu", "plans-kept", "overlap-right"}
    values = run.metrics
    assert (values["plain_length"], values["fast_length"], values["best_batch"] in {1, 16}) == (1123, 1125, True)
    assert (values["delivered_transforms"], values["ring_wrong_scores"], values["ring_found_percent"]) == (128, 123, 0)
    assert (values["template_transforms"], values["signals_per_call"], values["largest_prime_factor"]) == (64, 1, 1123)
    assert values["with_copies_us"] is None, "what needs a GPU is not made up"
    assert "(local mode)" in run.output
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "failed"),
    [
        ("length = samples + points - 1  #", "length = samples  #", {"filter-right", "finds"}),
        (".conj()", "", {"filter-right", "finds"}),
        ("return torch.stack(scores)", "return torch.stack(scores).abs()", {"filter-right"}),
        ("return torch.stack(scores)", "signals.zero_()\n    return torch.stack(scores)", {"filter-runs"}),
    ],
    ids=["circular", "convolved", "sign-lost", "input-changed"],
)
def test_a_planted_fault_of_a_filter_is_found(old: str, new: str, failed: set[str], tmp_path: Path) -> None:
    run = with_faults("5.8", tmp_path / "work", ("my_filter.py", old, new), **FEW)
    assert run.code == 0, run.output
    assert list_failed_checks(run) - OF_THE_FILTER == failed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--template=5000", "at most --samples 4096"),
        ("--batch-sizes=1,x", "whole numbers with commas"),
        ("--batch-sizes=99999", "each from 1 to --signals 16384"),
        ("--signals=1", "--signals of 16 at least"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_with_the_rule(word: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    _, script = lay_out("5.8", folder)
    process = start([sys.executable, script.name, word], folder, environment(folder))
    output = wait(process)
    assert process.returncode == 2
    assert said in output
    assert "Traceback" not in output
