"""The table of NVIDIA's all_reduce_perf: reading it, and comparing our sizes with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.exercises.scripts import beside_the_script

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
RECORDED = Path(__file__).parents[2] / "data" / "nccl-tests" / "all_reduce_perf.txt"
bandwidth = beside_the_script("shared", "bandwidth")
nccl_tests = beside_the_script("03-parallel-computing", "nccl_tests")


def test_parse_reads_the_recorded_table_as_our_formulas_have_it() -> None:
    rows = nccl_tests.parse(RECORDED.read_text(encoding="utf-8"))
    assert [row.size for row in rows] == [4 * KIB << power for power in range(16)]
    last = rows[-1]
    assert (last.count, last.dtype, last.time_us, last.algbw, last.busbw, last.wrong) == (
        33554432, "float", 1907.8, 70.35, 123.11, 0,
    )  # fmt: skip
    for row in rows:
        assert bandwidth.algbw(row.size, row.time_us / 1e6) == pytest.approx(row.algbw, abs=0.006)
        assert bandwidth.busbw("all_reduce", row.size, row.time_us / 1e6, 8) == pytest.approx(row.busbw, abs=0.011)


def program(folder: Path, body: str) -> str:
    path = folder / "all_reduce_perf"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_nccl_tests_runs_with_our_sizes_and_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, f'echo "$@" >"{tmp_path}/said"; cat "{RECORDED}"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    rows, why_not = nccl_tests.compare({4096: 0.115, 8192: 0.4, 5: 1.0}, high=8192, factor=2, gpus=2, hosts=1)
    assert why_not is None
    assert [(row["bytes"], row["theirs_gb_per_s"], round(row["ours_percent"])) for row in rows] == [
        (4096, 0.23, 50),
        (8192, 0.4, 100),
    ]
    assert (tmp_path / "said").read_text().split() == "-b 5 -e 8192 -f 2 -g 2 -n 20 -w 5".split()


@pytest.mark.parametrize(
    ("body", "gpus", "hosts", "reason"),
    [
        ("cat /dev/null", 2, 1, "ended with 0 and 0 rows; its last line: nothing"),
        ("echo no CUDA-capable device >&2; exit 3", 2, 1, "ended with 3 and 0 rows; its last line: no CUDA-capable device"),
        ("echo 1 2 float sum -1 a b c 0 d e f 0", 2, 1, "could not convert"),
        ("true", 0, 1, "it needs two GPUs"),
        ("true", 16, 2, "over several nodes it needs MPI"),
    ],
)
def test_beside_keeps_the_reason_if_it_cannot_run(
    body: str, gpus: int, hosts: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, body)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    rows, why_not = nccl_tests.compare({1024: 1.0}, high=2048, factor=2, gpus=gpus, hosts=hosts)
    assert rows == []
    assert reason in why_not
