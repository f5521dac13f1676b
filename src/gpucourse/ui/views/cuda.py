"""The report on a CUDA program on the screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from gpucourse.model.cuda import ACCESSES, SECTOR_BYTES, AccessCounts, CudaKernel, CudaReport
from gpucourse.ui.tables import (
    Block,
    Cell,
    Code,
    Content,
    Items,
    Lines,
    Paragraph,
    Table,
    View,
    name_column,
    number_column,
    table,
)
from gpucourse.ui.text import format_count
from gpucourse.units import format_bytes

WORDS = {
    "global_load": "global load",
    "global_store": "global store",
    "shared_load": "shared load",
    "shared_store": "shared store",
}
ABSENT = "–"
SOURCE_COLUMNS = 50  # a row has 80 columns: these, the counts and the line number
COLUMNS = (
    name_column("access"),
    number_column("requests"),
    number_column("sectors per request"),
    number_column("conflicts per request"),
    number_column("lanes"),
    number_column("bytes requested"),
    number_column("bytes moved"),
    number_column("used"),
)


def show_cuda(name: str, report: CudaReport, source: str | None = None) -> View:
    """Show what a program printed, a table for each kernel, and each fault. With `source`, the program's text, also show each
    of its lines with its counts."""
    blocks: list[Block] = [Code(report.output.rstrip("\n"), title="What it printed")]
    blocks += map(_tabulate, report.kernels)
    if source is not None:
        blocks.append(Code(annotate(name, source, report), title="sectors, conflicts and lanes of a request, by line"))
    blocks.append(Items(_describe_faults(report), title="Faults", style="bad"))
    blocks.append(Lines(report.notes))
    if not report.kernels:
        blocks.append(Paragraph("It launched no kernel."))
    return View(title=name, headline=_summarize(report), blocks=blocks)


def _summarize(report: CudaReport) -> Cell:
    kernels = format_count(len(report.kernels), "kernel")
    if report.faults:
        end = f"; the program ended with exit code {report.code}" if report.code and not report.message else ""
        return Cell(f"{format_count(len(report.faults), 'fault')} in {kernels}{end}", "bad")
    if report.message:
        return Cell(f"It failed: {report.message}", "bad")
    is_unwatched = any(kernel.is_unwatched for kernel in report.kernels)
    if report.code:
        part = "was watched" if is_unwatched else "ran"
        return Cell(f"It failed with exit code {report.code}; {kernels}, no fault in what {part}", "bad")
    orders = f" in {len(report.orders)} orders of the threads" if len(report.orders) > 1 else ""
    if is_unwatched:
        return Cell(f"{kernels}, no fault in what was watched{orders}", "warn")
    return Cell(f"{kernels}, no fault{orders}", "good")


def _describe_faults(report: CudaReport) -> list[Content]:
    several = len(report.orders) > 1
    return [
        f"{fault.kernel or 'the program'}, {fault.kind}"
        f"{f' ({fault.count:,} times)' if fault.count > 1 else ''}{f', order {fault.order}' if several else ''}: {fault.text}"
        for fault in report.faults
    ]


def _tabulate(kernel: CudaKernel) -> Table:
    rows = [(WORDS[access], *_format(kernel.count(access))) for access in ACCESSES if kernel.count(access).bytes]
    atomics = f", {format_count(kernel.atomics, 'atomic call')}" if kernel.atomics else ""
    launches = f"{format_count(kernel.launches, 'launch', 'launches')}, {format_count(kernel.threads, 'thread')}"
    sample = f" ({kernel.watched_threads:,} of them watched to the end)" if kernel.watched_threads < kernel.threads else ""
    block = f", blocks of {_name_block(kernel.block)}" if kernel.block else ""
    shared = f" with {format_bytes(kernel.shared_bytes)} of shared memory" if block and kernel.shared_bytes else ""
    title = f"{kernel.name}: {launches}{sample}{block}{shared}{atomics}"
    return table(COLUMNS, rows or [("none", *[ABSENT] * 7)], title=title)


def _name_block(block: Sequence[int]) -> str:
    """Return the size of a block as `32 x 8`, without dimensions of 1 at the end."""
    size = max((place for place, count in enumerate(block, 1) if count > 1), default=1)
    return " x ".join(map(str, block[:size]))


def _format(counts: AccessCounts) -> tuple[Content, ...]:
    conflicts = counts.conflicts_per_request
    wasteful = counts.sectors > 2 * counts.sectors_ideal
    return (
        f"{counts.requests:,}",
        Cell(_number(counts.sectors_per_request), "warn" if wasteful else ""),
        Cell(_number(None if counts.sectors else conflicts), "warn" if conflicts and conflicts >= 1 else ""),
        _number(counts.lanes_per_request),
        format_bytes(counts.bytes),
        format_bytes(counts.sectors * SECTOR_BYTES) if counts.sectors else ABSENT,
        ABSENT if counts.used_share is None else f"{counts.used_share * 100:.0f} %",
    )


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def annotate(name: str, source: str, report: CudaReport) -> str:
    """Return the source with the sectors, conflicts and lanes of a request beside each line. If a line makes several kinds of
    accesses, it shows the most sectors and conflicts and the fewest lanes. A long line continues below, broken at a space."""
    by_line = sum_lines(name, report)
    rows = [f"{'sectors':>7} {'conflicts':>9} {'lanes':>5}"]
    for number, text in enumerate(source.expandtabs(4).splitlines(), 1):
        counts = by_line.get(number, [])
        sectors = max((item.sectors_per_request or 0 for item in counts), default=0)
        conflicts = max((item.conflicts_per_request or 0 for item in counts), default=0)
        lanes = min((item.lanes_per_request or 32 for item in counts), default=0)
        cells = f"{_number(sectors or None):>7} {_number(conflicts or None):>9} {_number(lanes or None):>5}"
        first_line, *continuations = _break_line(text)
        rows.append(f"{cells if counts else ' ' * 23} {number:>4}  {first_line}".rstrip())
        rows += [f"{' ' * 30}{continuation}" for continuation in continuations]
    return "\n".join(rows)


def _break_line(text: str) -> list[str]:
    indent = text[: len(text) - len(text.lstrip())]
    wrapped = textwrap.wrap(
        text,
        SOURCE_COLUMNS,
        subsequent_indent=f"{indent[: SOURCE_COLUMNS // 2]}    ",
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return wrapped or [""]


def sum_lines(name: str, report: CudaReport) -> dict[int, list[AccessCounts]]:
    """Return the counts of each line of the file, by the line's number: one for each kernel and kind of access."""
    by_line: dict[int, list[AccessCounts]] = {}
    for kernel in report.kernels:
        for item in kernel.lines:
            if item.file == name and item.counts.requests:
                by_line.setdefault(item.line, []).append(item.counts)
    return by_line


def show_comparison(names: Sequence[str], reports: Sequence[CudaReport]) -> View:
    """Show two programs side by side: the same kernel in both or, if they share no name, the kernels paired in order."""
    before, after = reports
    blocks: list[Block] = [
        table(
            [name_column("per request, or in total"), number_column(names[0]), number_column(names[1])],
            list(_compare(first, second)),
            title=first.name if first and second and first.name == second.name else f"{_name(first)} and {_name(second)}",
        )
        for first, second in pair_kernels(before.kernels, after.kernels)
    ]
    for name, report in zip(names, reports, strict=True):
        blocks.append(Items(_describe_faults(report), title=f"Faults of {name}", style="bad"))
    outputs = "the same" if before.output == after.output else "different"
    blocks.append(Paragraph(f"The two programs print {outputs} text."))
    return View(title=f"{names[0]} and {names[1]}, compared", blocks=blocks)


def pair_kernels(
    before: Sequence[CudaKernel], after: Sequence[CudaKernel]
) -> list[tuple[CudaKernel | None, CudaKernel | None]]:
    """Return the kernels of two programs in pairs. A kernel without a counterpart is paired with None."""
    second_by_name = {kernel.name: kernel for kernel in after}
    names = {kernel.name for kernel in before}
    if not names & set(second_by_name):
        return list(zip_longest(before, after))
    pairs = [(kernel, second_by_name.get(kernel.name)) for kernel in before]
    return [*pairs, *((None, kernel) for kernel in after if kernel.name not in names)]


def _name(kernel: CudaKernel | None) -> str:
    return kernel.name if kernel else "none"


def _compare(first: CudaKernel | None, second: CudaKernel | None) -> Iterator[tuple[str, str, str]]:
    kernels = (first, second)

    def row(title: str, values: Sequence[str]) -> tuple[str, str, str]:
        return (title, values[0], values[1])

    yield row("launches", [f"{kernel.launches:,}" if kernel else ABSENT for kernel in kernels])
    yield row("threads", [f"{kernel.threads:,}" if kernel else ABSENT for kernel in kernels])
    for access in ACCESSES:
        counts = [kernel.count(access) if kernel else None for kernel in kernels]
        if not any(item and item.bytes for item in counts):
            continue
        yield row(f"{WORDS[access]}: requests", [f"{item.requests:,}" if item else ABSENT for item in counts])
        if access.startswith("global"):
            sectors = [_number(item.sectors_per_request) if item else ABSENT for item in counts]
            yield row(f"{WORDS[access]}: sectors per request", sectors)
            moved = [format_bytes(item.sectors * SECTOR_BYTES) if item else ABSENT for item in counts]
            yield row(f"{WORDS[access]}: bytes moved", moved)
        else:
            conflicts = [_number(item.conflicts_per_request) if item else ABSENT for item in counts]
            yield row(f"{WORDS[access]}: conflicts per request", conflicts)
    if any(kernel and kernel.atomics for kernel in kernels):
        yield row("atomic calls", [f"{kernel.atomics:,}" if kernel else ABSENT for kernel in kernels])
