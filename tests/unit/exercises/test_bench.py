"""The helper that every exercise measures with: percentiles, the timing loop, the table, the record."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from gpucourse.ui.loglines import TABLE_MARKER
from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script
from tests.waiting import STUCK_S

pytestmark = [pytest.mark.system, needs_module("torch")]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return beside_the_script("shared", "bench")


@pytest.mark.parametrize(
    ("samples", "percent", "value"),
    [([3.0], 50, 3.0), ([1, 2, 3, 4], 50, 2.5), ([4, 1, 3, 2], 0, 1), ([1, 2, 3, 4], 100, 4), ([10, 20], 80, 18.0)],
)
def test_percentiles(bench: ModuleType, samples: list[float], percent: float, value: float) -> None:
    assert bench.percentile(samples, percent) == pytest.approx(value)


def test_the_spread_is_in_milliseconds(bench: ModuleType) -> None:
    spread = bench.spread_ms([0.001, 0.002, 0.003, 0.004, 0.005, 0.006])
    assert spread == {"median_ms": 3.5, "p20_ms": 2.0, "p80_ms": 5.0, "samples": 6}


@pytest.mark.parametrize(
    ("variables", "shared"),
    [
        ({}, True),
        ({"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "GPUCOURSE_MODE": "local"}, True),
        ({"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GPUCOURSE_MODE": "slurm"}, True),
        ({"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "GPUCOURSE_MODE": "slurm"}, False),
    ],
)
def test_ranks_of_several_machines_are_not_on_one_computer(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], shared: bool
) -> None:
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GPUCOURSE_MODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert bench.is_on_one_computer() == shared


def test_exactly_as_many_calls_as_asked(bench: ModuleType) -> None:
    calls: list[int] = []
    assert len(bench.time_each(lambda: calls.append(1), bench.torch.device("cpu"), 7)) == len(calls) == 7


def test_what_comes_before_each_call_is_made_and_not_timed(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    now = 0.0
    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: now))

    def wait() -> None:
        nonlocal now
        order.append("before")
        now += 7

    seconds = bench.time_each(lambda: order.append("call"), bench.torch.device("cpu"), 3, wait)
    assert order == ["before", "call"] * 3
    assert seconds == [0, 0, 0]
    assert len(bench.time_calls(lambda: None, bench.torch.device("cpu"), agree=lambda _: 5.0, prepare=lambda: None)) == 5


def test_the_number_of_calls_follows_from_what_all_agree_on(bench: ModuleType) -> None:
    """One rank finds a call fast, another slow: with the agreed estimate both make the same number."""
    cpu, estimates = bench.torch.device("cpu"), []

    def agree(estimate: float) -> float:
        estimates.append(estimate)
        return 0.01

    assert len(bench.time_calls(lambda: None, cpu, agree=agree, budget_s=0.5)) == 50
    assert len(bench.time_calls(lambda: None, cpu, agree=agree, budget_s=9.0)) == 100
    assert len(bench.time_calls(lambda: None, cpu, agree=lambda _: 5.0)) == 5
    assert len(estimates) == 2


def test_a_table_lines_up_and_shows_what_was_not_measured(bench: ModuleType) -> None:
    rows = [{"case": "one", "ms": 1.23456, "n": 1000}, {"case": "another", "ms": None, "n": 2}]
    assert bench.table(rows, {"case": "case", "ms": "ms", "n": "n"}).splitlines() == [
        "case       ms      n",
        "-------  ----  -----",
        "one      1.23  1,000",
        "another     -      2",
    ]


def test_where_the_results_are_is_said_to_somebody_who_started_the_script(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """gpucourse shows the tables of metrics.json after the run, and says where the results are; the log has the tables."""

    def print_all() -> str:
        bench.say_table([{"ms": 1.5}], {"ms": "step ms"}, title="A step:")
        bench.say_end(tmp_path / "metrics.json", bench.torch.device("cpu"), "an engine")
        return capsys.readouterr().out

    table = "\nA step:\nstep ms\n-------\n    1.5\n\n"
    monkeypatch.delenv("GPUCOURSE_OUT", raising=False)
    output = print_all()
    assert output.startswith(f"{table}cpu (")
    assert output.endswith(f"cores per rank · an engine\nwritten: {tmp_path / 'metrics.json'}\n")
    monkeypatch.setenv("GPUCOURSE_OUT", str(tmp_path))
    assert print_all() == "[table of the result]\nA step:\nstep ms\n-------\n    1.5\n\n"
    assert bench.TABLE.encode() == TABLE_MARKER


def test_the_record(bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCOURSE_OUT", str(tmp_path / "out"))
    monkeypatch.setenv("GPUCOURSE_MODE", "local")
    monkeypatch.setattr(sys, "argv", ["script.py", "--words=it's"])
    metrics = {"loss": float("nan"), "rows": [{"ms": float("inf")}, {"ms": None}], "pair": (1, 2.5)}
    path = bench.write_metrics("test/1", bench.torch.device("cpu"), world_size=2, seed=7, metrics=metrics)
    assert path == tmp_path / "out" / "metrics.json"
    entry = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (entry["loss"], entry["rows"], entry["pair"]) == ("nan", [{"ms": "inf"}, {"ms": None}], [1, 2.5])
    assert (entry["schema"], entry["mode"], entry["world_size"], entry["seed"]) == ("test/1", "local", 2, 7)
    assert entry["command"] == "script.py '--words=it'\"'\"'s'"
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["metrics.json"]


def test_measured_on_a_cpu_by_torchs_own_timer(bench: ModuleType) -> None:
    calls: list[int] = []
    seconds = bench.measure(lambda: calls.append(1), bench.torch.device("cpu"), budget_s=0.01, at_least=7)
    assert len(seconds) >= 7
    assert len(calls) > len(seconds), "calls that are too short for the clock are taken together"
    assert bench.percentile(seconds, 50) > 0


def test_threads_are_as_asked_for_and_as_before_afterwards(bench: ModuleType) -> None:
    thread_count, thread_counts = bench.torch.get_num_threads(), set()
    bench.measure(
        lambda: thread_counts.add(bench.torch.get_num_threads()), bench.torch.device("cpu"), budget_s=0.001, threads=1
    )
    assert thread_counts == {1}
    assert bench.torch.get_num_threads() == thread_count


class FakeEvent:
    """A CUDA event without CUDA: it remembers when it was recorded, on a clock that `work` moves."""

    now = 0.0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = FakeEvent.now

    def elapsed_time(self, end: FakeEvent) -> float:
        return end.at - self.at


def test_on_a_gpu_events_span_the_call_and_not_the_flush(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flush takes 100 ms and the call 2: the events must say 2."""
    order: list[str] = []

    def moves(name: str, milliseconds: float) -> None:
        order.append(name)
        FakeEvent.now += milliseconds

    monkeypatch.setattr(bench.torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(bench.torch.cuda, "synchronize", lambda _: order.append("waited"))
    cuda = bench.torch.device("cuda", 0)
    seconds = bench.measure(lambda: moves("call", 2.0), cuda, budget_s=0.05, at_least=30, flush=lambda: moves("flush", 100.0))
    assert seconds == pytest.approx([0.002] * len(seconds))
    assert len(seconds) >= 30
    assert order[:2] == ["flush", "call"]
    assert order.count("waited") < order.count("call") / 2, "one wait at the end of many calls, not one in each"


def test_only_a_gpu_has_a_cache_to_flush(bench: ModuleType) -> None:
    assert bench.cache_flush(bench.torch.device("cpu")) is None


def test_where_a_script_computes(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUCOURSE_BACKEND", raising=False)
    monkeypatch.setattr(bench.torch.cuda, "is_available", lambda: True)
    assert bench.here().type == "cuda"
    monkeypatch.setenv("GPUCOURSE_BACKEND", "gloo")
    assert bench.here().type == "cpu"


def spin() -> None:
    """As a kernel in the interpreter does that never ends: Python's own loop."""
    while True:
        pass


def test_limit_time_ends_a_kernel_without_end(bench: ModuleType) -> None:
    with (
        pytest.raises(TimeoutError, match=r"^it did not end within 0\.05 s$"),
        bench.limit_time(0.05),
    ):
        spin()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0), "nothing rings afterwards"


def test_limit_time_gives_a_block_that_waits_ten_times_as_long(bench: ModuleType) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError), bench.limit_time(0.05):
        time.sleep(STUCK_S)
    assert time.monotonic() - began >= 10 * 0.05
