"""The screen about a CUDA program: its tables, its lines, and two programs side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.model.cuda import AccessCounts, CudaFault, CudaKernel, CudaLine, CudaReport
from gpucourse.ui.render import render
from gpucourse.ui.tables import View
from gpucourse.ui.views.cuda import annotate, pair_kernels, show_comparison, show_cuda

NONE = AccessCounts(requests=0, sectors=0, sectors_ideal=0, bytes=0, lanes=0, bank_conflicts=0)
STRIDED = AccessCounts(requests=4, sectors=128, sectors_ideal=16, bytes=512, lanes=128, bank_conflicts=0)
SHARED = AccessCounts(requests=4, sectors=0, sectors_ideal=0, bytes=512, lanes=64, bank_conflicts=6)


def make_kernel(name: str = "copy", *, load: AccessCounts = STRIDED) -> CudaKernel:
    lines = [
        CudaLine(file="my.cu", line=2, access="global_load", counts=load),
        CudaLine(file="my.cu", line=2, access="shared_store", counts=SHARED),
        CudaLine(file="tile.h", line=1, access="shared_load", counts=SHARED),
        CudaLine(file="", line=0, access="global_store", counts=STRIDED),
    ]
    return CudaKernel(
        name=name, launches=2, threads=256, watched_threads=128, block=[64, 2, 1], shared_bytes=2048, atomics=3,
        global_load=load, global_store=NONE, shared_load=NONE, shared_store=SHARED, lines=lines, requests=[],
    )  # fmt: skip


def make_report(*kernels: CudaKernel) -> CudaReport:
    return CudaReport(state="ended", message="", notes=[], code=0, output="", orders=[0], faults=[], kernels=list(kernels))


def draw(view: View) -> str:
    return render(view, width=140, colour=False)


def test_show_cuda_has_a_table_with_sample_block_and_atomics() -> None:
    text = draw(show_cuda("my.cu", make_report(make_kernel())))
    assert (
        "copy: 2 launches, 256 threads (128 of them watched to the end), blocks of 64 x 2 with 2.0 KiB of shared memory" in text
    )
    assert ", 3 atomic calls" in text
    rows = {line[:12].strip(): line.split()[2:] for line in text.splitlines() if line.startswith(("global ", "shared "))}
    assert rows == {
        "global load": ["4", "32", "–", "32", "512", "B", "4.0", "KiB", "12", "%"],
        "shared store": ["4", "–", "1.5", "16", "512", "B", "–", "–"],
    }


def test_annotate_writes_the_numbers_of_the_lines_of_a_source_only() -> None:
    assert annotate("my.cu", "int a;\n\tcopy();\n", make_report(make_kernel())).splitlines() == [
        "sectors conflicts lanes",
        f"{'':23}    1  int a;",
        "     32       1.5    16    2      copy();",
    ]


def test_annotate_continues_a_long_line_below_at_a_word() -> None:
    long = f"  out[i] = {' + '.join(['element'] * 8)};"
    rows = annotate("other.cu", long, make_report(make_kernel())).splitlines()[1:]
    assert [row[:30].strip() for row in rows] == ["1", ""]
    assert max(map(len, rows)) <= 80
    assert " ".join(row[30:].strip() for row in rows) == long.strip()


def test_show_cuda_begins_with_how_the_program_ended() -> None:
    report = make_report(make_kernel())
    fault = CudaFault(kernel="", kind="race", count=7, text="my.cu:2: it races", order=3, file="my.cu", line=2)
    assert (
        draw(show_cuda("my.cu", replace(report, orders=[0, 1]))).splitlines()[1]
        == "1 kernel, no fault in 2 orders of the threads"
    )
    faulty = draw(show_cuda("my.cu", replace(report, faults=[fault], orders=[0, 3], code=1)))
    assert "1 fault in 1 kernel; the program ended with exit code 1" in faulty
    assert "the program, race (7 times), order 3: my.cu:2: it races" in faulty
    assert "It failed: it crashed" in draw(show_cuda("my.cu", replace(report, message="it crashed", state="failed")))
    assert "It launched no kernel." in draw(show_cuda("my.cu", make_report()))


@pytest.mark.parametrize(
    ("code", "headline"),
    [(0, "1 kernel, no fault in what was watched"), (3, "It failed with exit code 3; 1 kernel, no fault in what was watched")],
)
def test_show_cuda_says_that_a_kernel_was_not_watched(code: int, headline: str) -> None:
    report = make_report(replace(make_kernel(), watched_threads=0))
    assert draw(show_cuda("my.cu", replace(report, code=code))).splitlines()[1] == headline


def test_pair_kernels_pairs_them_by_name_or_else_by_order() -> None:
    a, b, c = (make_kernel(name) for name in "abc")
    assert pair_kernels([a, b], [b, c]) == [(a, None), (b, b), (None, c)]
    assert pair_kernels([a], [b, c]) == [(a, b), (None, c)]
    better = make_kernel("a", load=replace(STRIDED, sectors=16))
    text = draw(show_comparison(["old.cu", "new.cu"], [make_report(a), make_report(better)]))
    assert next(line.split()[-2:] for line in text.splitlines() if "sectors per request" in line) == ["32", "4"]
    assert "The two programs print the same text." in text
