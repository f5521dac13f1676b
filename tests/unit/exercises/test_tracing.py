"""The tracers of bonus B: each counts what the engine's ledger says, and none is taken where it cannot."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.parts import need
from tests.unit.exercises.scripts import beside_the_script
from tests.waiting import STUCK_S

if sys.platform != "linux":
    pytest.skip("uprobes and LD_PRELOAD need Linux", allow_module_level=True)
FOLDER = Path(__file__).parents[3] / "exercises" / "B-ebpf-tracing"
bpf = beside_the_script("B-ebpf-tracing", "bpf")
stand_in = beside_the_script("B-ebpf-tracing", "stand_in")
tracers = beside_the_script("B-ebpf-tracing", "tracers")
costs = beside_the_script("B-ebpf-tracing", "solutions/my_costs")
AFTER_A_KILL = f"""
import sys
sys.path.insert(0, {str(FOLDER)!r})
import bpf, stand_in, tracers
with stand_in.Engine(folder=__import__("pathlib").Path(sys.argv[1])) as engine:
    with tracers.trace(tracers.find(sys.argv[2], engine.library), engine):
        print(engine.pid, flush=True)
        sys.stdin.read()
"""


def test_choose_store_on_a_node_is_below_the_cache_of_the_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("GPUCOURSE_CACHE", str(tmp_path / "lab"))
    assert stand_in._choose_store(None) == tmp_path / "lab" / "tracing"
    assert not (tmp_path / "mine").exists()


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("cc")
    if Path("/dev/nvidia0").exists():
        pytest.skip("the stand-in is refused where there is a GPU")
    return Path(stand_in.build(tmp_path_factory.mktemp("cache")))


def find(name: str, binaries: Path) -> Any:
    """That tracer; skips, with the words of the tracer or of the kernel, where it cannot be used on this machine."""
    if name == "preload":
        return tracers.Preload(binaries / stand_in.COUNTER)
    if name == "bpftrace":
        need("bpftrace")
    try:
        return tracers.find(name, binaries / stand_in.LIBRARY)
    except tracers.NoTracer as error:
        pytest.skip(str(error))


def test_preload_counts_if_the_path_of_its_library_has_a_space_and_a_colon(binaries: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my work: 2"
    folder.mkdir()
    tracer = tracers.Preload(Path(shutil.copy(binaries / stand_in.COUNTER, folder)))
    with stand_in.Engine(layers=2, seed=1, memory=19_000_000, tracer=tracer, folder=binaries) as engine:
        with tracers.trace(tracer, engine) as counted:
            engine.load()
        made = {api: count for api, count in engine.ledger()["calls"].items() if count}
    assert {api: calls.calls for api, calls in counted.calls.items() if calls.calls} == made
    assert made["cudaMalloc"] > 0


def test_a_probe_takes_a_path_with_a_space_and_a_colon_as_one(binaries: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my work: 2"
    folder.mkdir()
    library = Path(shutil.copy(binaries / stand_in.LIBRARY, folder))
    assert f'uprobe:"{library}":cudaMalloc ' in tracers.write_program(library)


@pytest.mark.parametrize("name", ["bpftrace", "perf", "preload"])
def test_a_tracer_and_the_ledger_are_equal_to_the_last_call(name: str, binaries: Path) -> None:
    tracer = find(name, binaries)
    with stand_in.Engine(layers=5, seed=2, memory=19_000_000, tracer=tracer, folder=binaries) as engine:
        with tracers.trace(tracer, engine) as counted:
            assert engine.load() is None
            assert engine.request(40, 3) == (3, None)
            made, why = engine.request(4000, 20)
        ledger = engine.ledger()
    assert made < 20
    assert why == "out of memory"
    assert {api: calls.calls for api, calls in counted.calls.items()} == ledger["calls"]
    assert counted.calls["cudaMalloc"].failed == ledger["failed"] == 1
    assert {api: calls.bytes for api, calls in counted.calls.items() if calls.bytes is not None} == ledger["bytes"]
    assert counted.kernels == ledger["kernels"]
    for site, true in ledger["sites"].items():
        assert (counted.sites[site].calls, counted.sites[site].bytes) == (true["calls"] - true["failed"], true["bytes"])
    assert sum(count for _, _, count in counted.sizes) == ledger["calls"]["cudaMalloc"] - 1
    assert all(calls.p50_us and calls.p99_us and calls.p50_us <= calls.p99_us for calls in counted.calls.values())


@pytest.mark.parametrize(("layers", "prompt", "tokens"), [(4, 16, 8), (6, 1, 1), (9, 100, 33), (5, 17, 16), (6, 16, 17)])
def test_formulas_of_the_judge_are_what_the_engine_does(layers: int, prompt: int, tokens: int, binaries: Path) -> None:
    with stand_in.Engine(layers=layers, seed=layers, folder=binaries) as engine:
        engine.request(prompt, tokens)
        ledger = engine.ledger()
    assert costs.count_launches(layers, prompt, tokens) == ledger["kernels"]
    blocks = costs.count_blocks(layers, ledger["width"], ledger["vocabulary"], prompt, tokens)
    assert blocks == {name: (site["calls"], site["bytes"]) for name, site in ledger["sites"].items()}


@pytest.mark.parametrize(("seed", "site"), [(1, "allocate_logits"), (2, "grow_cache"), (3, "copy_prompt")])
def test_the_seed_decides_which_buffer_is_not_freed(seed: int, site: str, binaries: Path) -> None:
    with stand_in.Engine(seed=seed, folder=binaries) as engine:
        engine.request(20, 9)
        ledger = engine.ledger()
    assert {name for name, row in ledger["sites"].items() if row["alive_bytes"]} == {"load_weights", site}
    assert ledger["alive_bytes"] == sum(row["alive_bytes"] for row in ledger["sites"].values())


def test_an_engine_answers_over_http_and_refuses_what_is_no_request(binaries: Path) -> None:
    with stand_in.Engine(folder=binaries) as engine, engine.serve() as url:

        def post(body: object) -> dict[str, Any]:
            with urllib.request.urlopen(f"{url}/v1/completions", json.dumps(body).encode(), timeout=STUCK_S) as answer:
                return dict(json.loads(answer.read()))

        assert post({"prompt": "a b c", "max_tokens": 4})["usage"]["completion_tokens"] == 4
        assert engine.ledger()["kernels"]["sample_token"] == 4
        with pytest.raises(urllib.error.HTTPError, match="400"):
            post({"prompt": "a b c"})


@pytest.mark.parametrize("name", ["perf", pytest.param("bpftrace", marks=pytest.mark.slow)])
def test_a_killed_script_leaves_neither_engine_nor_tracer(name: str, binaries: Path) -> None:
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


def test_auto_says_why_earlier_tracers_are_not_taken(binaries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracers.bpf, "find_reason", lambda _library: "bpftrace needs root")
    monkeypatch.setattr(tracers.perf_probes, "find_reason", lambda _library, _offset: "perf_event_open is refused here")
    monkeypatch.setattr(tracers.stand_in, "build_counter", lambda: binaries / stand_in.COUNTER)
    tracer = tracers.find("auto", binaries / stand_in.LIBRARY)
    assert tracer.name == "preload"
    assert tracer.refusals == ["bpftrace needs root", "perf_event_open is refused here"]
    with pytest.raises(tracers.NoTracer, match="bpftrace needs root"):
        tracers.find("bpftrace", binaries / stand_in.LIBRARY)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("echo 'ERROR: Could not create perf map: Operation not permitted' >&2; exit 1", "Operation not permitted"),
        ("trap 'exit 3' INT; echo ready; while :; do sleep 0.01; done", "ended with 3"),
    ],
)
def test_a_bpftrace_that_is_refused_is_named_with_its_words(
    lines: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bpftrace"
    fake.write_text(f"#!{shutil.which('bash')}\n{lines}\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert words in bpf.find_reason(Path("/lib/libcudart.so"))


def test_maps_are_read_and_lost_events_are_no_trace() -> None:
    printed = '\n{"type": "map", "data": {"@calls": {"cudaMalloc": 15}}}\n{"type": "map", "data": {"@ready": 1}}\n'
    assert bpf.read_maps(printed) == {"@calls": {"cudaMalloc": 15}}
    with pytest.raises(bpf.TracerFailed, match="lost events"):
        bpf.read_maps(printed + '{"type": "lost_events", "data": {"events": 12}}\n')


def test_a_percentile_is_the_upper_end_of_its_bucket() -> None:
    assert tracers._percentile_us({3: 50, 9: 49, 20: 1}, 50) == 0.016
    assert tracers._percentile_us({3: 50, 9: 49, 20: 1}, 99) == 1.024
    assert tracers._percentile_us({}, 50) is None


def test_a_computer_without_a_compiler_or_with_a_gpu_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(stand_in.UnsupportedMachine, match="apt-get install gcc"):
        stand_in.build_counter(tmp_path)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(stand_in.UnsupportedMachine, match="--target hosts"):
        stand_in.build_counter(tmp_path)
    monkeypatch.setattr(Path, "exists", lambda _path: True)
    with pytest.raises(stand_in.UnsupportedMachine, match="has a GPU"):
        stand_in.build(tmp_path)
