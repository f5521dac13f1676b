"""The page of a workspace with 300 runs, one with a log of 200 MB: how long `open` takes, how large its first page is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from benchmarks.lab import Lab, lab
from benchmarks.measure import Row, medians

RUNS, ROUNDS = 300, 3
LOG_BYTES = 200_000_000
PROMISE_S, FIRST_PAGE_BYTES = 3.0, 500_000


def measure() -> Iterator[Row]:
    """`open` in a workspace with copies of a real run of 3.1 on two nodes."""
    with lab() as bench_lab:
        bench_lab.type("deploy", "3")
        bench_lab.type("run", "3.1", "--nodes", "2", "--no-predict")
        fill(bench_lab)
        (took,) = medians(lambda: bench_lab.type("open", "--no-browser"), rounds=ROUNDS)
        size = (bench_lab.root / "page" / "index.html").stat().st_size
        pages = sum(1 for _ in bench_lab.root.glob("page/runs/*/*.html"))
    held = took <= PROMISE_S and size <= FIRST_PAGE_BYTES and pages == RUNS
    what = f"open, {pages} runs, a log of {LOG_BYTES // 1_000_000} MB, first page {size // 1000} KB"
    yield Row(what=what, ours_s=took, promise=f"{PROMISE_S:g} s, 500 KB", held=held)


def fill(bench_lab: Lab) -> None:
    """Copy the only run until there are 300, and make a log of one of them long."""
    (original,) = bench_lab.root.glob("runs/3.1/*")
    record = original.joinpath("run.json").read_text(encoding="utf-8")
    for number in range(1, RUNS):
        name = f"20260101-{number:06}-copy"
        folder = shutil.copytree(original, original.with_name(name))
        folder.joinpath("run.json").write_text(record.replace(original.name, name), encoding="utf-8")
    line = b"epoch 3 step 12345 loss 2.3456 samples/s 123456.7\n"
    with original.joinpath("logs", "node0-rank0.log").open("ab") as log:
        for _ in range(0, LOG_BYTES, len(line) * 20_000):
            log.write(line * 20_000)
