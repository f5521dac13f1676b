"""The engine that bonus B traces: its ledger, its answers, and computers on which it cannot be built."""

from __future__ import annotations

import json
import shutil
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script
from tests.waiting import STUCK_S

if sys.platform != "linux":
    pytest.skip("uprobes and LD_PRELOAD need Linux", allow_module_level=True)
stand_in = beside_the_script("B-ebpf-tracing", "stand_in")
solution = beside_the_script("B-ebpf-tracing", "solutions/my_deviation")


def test_choose_store_on_a_node_is_below_the_cache_of_the_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("GPUCOURSE_CACHE", str(tmp_path / "lab"))
    assert stand_in._choose_store(None) == tmp_path / "lab" / "tracing"
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(("layers", "prompt", "tokens"), [(4, 16, 8), (9, 100, 33), (6, 1, 1)])
def test_engine_makes_the_calls_of_the_solution(layers: int, prompt: int, tokens: int, binaries: Path) -> None:
    with stand_in.Engine(layers=layers, seed=layers, folder=binaries) as engine:
        engine.request(prompt, tokens)
        ledger = engine.ledger()
    counts = {**ledger["kernels"], **{name: site["calls"] for name, site in ledger["sites"].items()}}
    assert {**solution.count_request(layers, prompt, tokens), "load_weights": layers} == counts


def test_engine_answers_over_http_and_refuses_what_is_no_request(binaries: Path) -> None:
    with stand_in.Engine(folder=binaries) as engine, engine.serve() as url:

        def post(body: object) -> dict[str, Any]:
            with urllib.request.urlopen(f"{url}/v1/completions", json.dumps(body).encode(), timeout=STUCK_S) as answer:
                return dict(json.loads(answer.read()))

        assert post({"prompt": "a b c", "max_tokens": 4})["usage"]["completion_tokens"] == 4
        assert engine.ledger()["kernels"]["sample_token"] == 4
        with pytest.raises(urllib.error.HTTPError, match="400"):
            post({"prompt": "a b c"})


def test_build_says_why_a_computer_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(stand_in.UnsupportedMachine, match="apt-get install gcc"):
        stand_in.build_counter(tmp_path)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(stand_in.UnsupportedMachine, match="--target hosts"):
        stand_in.build_counter(tmp_path)
    monkeypatch.setattr(Path, "exists", lambda _path: True)
    with pytest.raises(stand_in.UnsupportedMachine, match="has a GPU"):
        stand_in.build(tmp_path)
