"""The tracers of bonus B: each counts what the engine's ledger says, and none is taken where it cannot be used."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.parts import need
from tests.unit.exercises.scripts import beside_the_script
from tests.waiting import STUCK_S

if sys.platform != "linux":
    pytest.skip("uprobes and LD_PRELOAD need Linux", allow_module_level=True)
FOLDER = Path(__file__).parents[3] / "exercises" / "B-ebpf-tracing"
stand_in = beside_the_script("B-ebpf-tracing", "stand_in")
tracers = beside_the_script("B-ebpf-tracing", "tracers")
AFTER_A_KILL = f"""
import sys
sys.path.insert(0, {str(FOLDER)!r})
import bpf, stand_in, tracers
with stand_in.Engine(folder=__import__("pathlib").Path(sys.argv[1])) as engine:
    with tracers.trace(tracers.find(sys.argv[2], engine.library), engine):
        print(engine.pid, flush=True)
        sys.stdin.read()
"""


def find(name: str, binaries: Path) -> Any:
    """Return that tracer; skips, with the words of the tracer or of the kernel, where it cannot be used on this machine."""
    if name == "preload":
        return tracers.Preload(binaries / stand_in.COUNTER)
    if name == "bpftrace":
        need("bpftrace")
    try:
        return tracers.find(name, binaries / stand_in.LIBRARY)
    except tracers.NoTracer as error:
        pytest.skip(str(error))


def test_preload_counts_if_its_path_has_a_space_and_a_colon(binaries: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my work: 2"
    folder.mkdir()
    tracer = tracers.Preload(Path(shutil.copy(binaries / stand_in.COUNTER, folder)))
    with stand_in.Engine(layers=2, seed=1, memory=19_000_000, tracer=tracer, folder=binaries) as engine:
        with tracers.trace(tracer, engine) as trace:
            engine.load()
        call_counts = {api: count for api, count in engine.ledger()["calls"].items() if count}
    assert {api: calls.calls for api, calls in trace.calls.items() if calls.calls} == call_counts
    assert call_counts["cudaMalloc"] > 0


def test_write_program_quotes_a_path_with_a_space_and_a_colon(binaries: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my work: 2"
    folder.mkdir()
    library = Path(shutil.copy(binaries / stand_in.LIBRARY, folder))
    assert f'uprobe:"{library}":cudaMalloc ' in tracers.write_program(library)


@pytest.mark.parametrize("name", ["bpftrace", "perf", "preload"])
def test_trace_equals_the_ledger_to_the_last_call(name: str, binaries: Path) -> None:
    tracer = find(name, binaries)
    with stand_in.Engine(layers=5, seed=2, memory=19_000_000, tracer=tracer, folder=binaries) as engine:
        with tracers.trace(tracer, engine) as trace:
            assert engine.load() is None
            assert engine.request(40, 3) == (3, None)
            token_count, reason = engine.request(4000, 20)
        ledger = engine.ledger()
    assert token_count < 20
    assert reason == "out of memory"
    assert {api: calls.calls for api, calls in trace.calls.items()} == ledger["calls"]
    assert trace.calls["cudaMalloc"].failed == ledger["failed"] == 1
    assert {api: calls.bytes for api, calls in trace.calls.items() if calls.bytes is not None} == ledger["bytes"]
    assert trace.kernels == ledger["kernels"]
    for site, true in ledger["sites"].items():
        assert (trace.sites[site].calls, trace.sites[site].bytes) == (true["calls"] - true["failed"], true["bytes"])
    assert sum(count for _, _, count in trace.sizes) == ledger["calls"]["cudaMalloc"] - 1
    assert all(calls.p50_us and calls.p99_us and calls.p50_us <= calls.p99_us for calls in trace.calls.values())


@pytest.mark.parametrize("name", ["perf", pytest.param("bpftrace", marks=pytest.mark.slow)])
def test_trace_leaves_no_process_if_the_script_is_killed(name: str, binaries: Path) -> None:
    find(name, binaries)
    command = [sys.executable, "-c", AFTER_A_KILL, str(binaries), name]
    script = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert script.stdout
    assert script.stdin
    assert script.stdout.readline().strip().isdecimal()
    children = Path(f"/proc/{script.pid}/task/{script.pid}/children").read_text(encoding="utf-8").split()
    assert len(children) == (2 if name == "bpftrace" else 1)
    watched = [os.pidfd_open(int(child)) for child in children]
    script.kill()
    script.wait()
    for child in watched:
        assert select.select([child], [], [], STUCK_S)[0], "it did not end with the script that started it"
        os.close(child)
    script.stdin.close()
    script.stdout.close()


def test_find_auto_says_why_earlier_tracers_are_not_taken(binaries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracers.bpf, "find_reason", lambda _library: "bpftrace needs root")
    monkeypatch.setattr(tracers.perf_probes, "find_reason", lambda _library, _offset: "perf_event_open is refused here")
    monkeypatch.setattr(tracers.stand_in, "build_counter", lambda: binaries / stand_in.COUNTER)
    tracer = tracers.find("auto", binaries / stand_in.LIBRARY)
    assert tracer.name == "preload"
    assert tracer.refusals == ["bpftrace needs root", "perf_event_open is refused here"]
    with pytest.raises(tracers.NoTracer, match="bpftrace needs root"):
        tracers.find("bpftrace", binaries / stand_in.LIBRARY)
