"""bpftrace: what it prints, read; and why it cannot be used."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.unit.exercises.scripts import beside_the_script

if sys.platform != "linux":
    pytest.skip("uprobes and LD_PRELOAD need Linux", allow_module_level=True)
bpf = beside_the_script("B-ebpf-tracing", "bpf")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("echo 'ERROR: Could not create perf map: Operation not permitted' >&2; exit 1", "Operation not permitted"),
        ("trap 'exit 3' INT; echo ready; while :; do sleep 0.01; done", "ended with 3"),
        (
            "trap 'n=$((n + 1))' INT; echo ready; while [ -z \"$n\" ]; do sleep 0.01; done\n"
            "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.1; done; exit $((n + 3))",  # it takes a while to detach its probes
            "ended with 4",
        ),
    ],
)
def test_find_reason_has_the_words_of_bpftrace(lines: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bpftrace"
    fake.write_text(f"#!{shutil.which('bash')}\n{lines}\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert words in bpf.find_reason(Path("/lib/libcudart.so"))


def test_read_maps_refuses_lost_events() -> None:
    output = '\n{"type": "map", "data": {"@calls": {"cudaMalloc": 15}}}\n{"type": "map", "data": {"@ready": 1}}\n'
    assert bpf.read_maps(output) == {"@calls": {"cudaMalloc": 15}}
    with pytest.raises(bpf.TracerFailed, match="lost events"):
        bpf.read_maps(output + '{"type": "lost_events", "data": {"events": 12}}\n')
