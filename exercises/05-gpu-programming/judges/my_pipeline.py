"""Judge my_pipeline.py of 5.4: its operations are replayed, searched for hazards, and executed in the worst order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.judge import Part, Way
from gpucourse.judge.verdict import Verdict

if TYPE_CHECKING:
    from streams import Hazard, Operation, Replay, ReplayedDevice

SHARE = 95.0  # percent of the overlap that this number of buffers allows
CASES = (  # chunks, buffers, units of a copy in, a compute and a copy out
    (8, 3, (1.0, 1.0, 1.0)), (8, 3, (1.0, 3.0, 1.0)), (17, 3, (2.0, 1.0, 0.5)), (8, 2, (1.0, 1.0, 1.0)),
    (2, 3, (1.0, 1.0, 1.0)), (5, 1, (1.0, 1.0, 1.0)), (23, 5, (1.0, 1.0, 2.0)),
)  # fmt: skip
IN_THE_WORST = " In the worst order that this permits, {wrong} of {chunks} chunks come back wrong."
WAYS = {
    "compute-early": Way(
        "{hazard}: they are in two streams, so the kernel may begin before its chunk is there. Record an event after the "
        "copy, and let the kernel's stream wait for it." + IN_THE_WORST,
        ("        device.wait(computing, arrival)\n", ""),
    ),
    "copy-out-early": Way(
        "{hazard}: the copy back may begin before the kernel is done, and copy old data. It needs an event after the "
        "kernel." + IN_THE_WORST,
        ("        device.wait(copying_out, result)\n", ""),
    ),
    "recorded-early": Way(
        "{hazard}, though there is an event: it was recorded before the copy was queued, and an event marks what is in the "
        "stream at that moment, but nothing that comes later. Record it after the copy." + IN_THE_WORST,
        (
            "        device.copy_in(copying_in, chunk, buffer)\n        arrival = device.record(copying_in)\n",
            "        arrival = device.record(copying_in)\n        device.copy_in(copying_in, chunk, buffer)\n",
        ),
    ),
    "reuse": Way(
        "{hazard}: the buffer is filled again while its last chunk may still be in use. The copy in must wait for the event "
        "after the copy out of the chunk that was there." + IN_THE_WORST,
        ("            device.wait(copying_in, copies[chunk - device.buffers])\n", "            pass\n"),
    ),
    "reuse-after-compute": Way(
        "{hazard}: the new chunk waits until the last one is computed, not until it is copied out. A buffer is free after its "
        "copy out." + IN_THE_WORST,
        ("copies.append(device.record(copying_out))", "copies.append(result)"),
    ),
    "fewer-buffers": Way(
        "right, but with {percent:.0f}% of the overlap (95% is required): your chunks use {used} of the {buffers} buffers. "
        "While one is filled and one is computed, a third is copied back: three simultaneous stages need three buffers",
        (
            "        buffer = chunk % device.buffers\n"
            "        if chunk >= device.buffers:\n"
            "            device.wait(copying_in, copies[chunk - device.buffers])\n",
            "        buffer = chunk % min(2, device.buffers)\n"
            "        if chunk >= min(2, device.buffers):\n"
            "            device.wait(copying_in, copies[chunk - min(2, device.buffers)])\n",
        ),
    ),
    "shares-a-stream": Way(
        "right, but with {percent:.0f}% of the overlap (95% is required): {engines} share a stream, where each operation "
        "waits for the previous one. With more streams they could work at the same time, on different chunks",
        (
            "copying_in, computing, copying_out = device.stream(), device.stream(), device.stream()",
            "copying_in = copying_out = device.stream()\n    computing = device.stream()",
        ),
    ),
    "waits-too-much": Way(
        'right, but with {percent:.0f}% of the overlap (95% is required): "{late}" waits for "{needless}", which has nothing '
        "to do with its buffer. One event too many costs time, and one too few makes the result wrong",
        ("copies[chunk - device.buffers]", "copies[chunk - 1]"),
    ),
    "chunks-missing": Way(
        "{given} of {chunks} chunks came back: the loop must process all of them",
        ("range(chunks)", "range(chunks - 1)"),
    ),
    "not-computed": Way(
        "all {chunks} chunks came back, but {given} of them were computed: between its copies each needs a device.compute",
        ("        device.compute(computing, buffer)\n", ""),
    ),
    "computed-elsewhere": Way(
        "it leaves no hazard, but {wrong} of {chunks} chunks come back wrong: are copy in, compute and copy out of a chunk all "
        "on the same buffer, and is each done once?",
        (
            "device.compute(computing, buffer)\n",
            "device.compute(computing, buffer)\n        device.compute(computing, buffer)\n",
        ),
    ),
}


def judge(part: Part) -> None:
    """Judge pipelines of several lengths, with one to five buffers and with each engine as the slowest one."""
    from streams import ReplayedDevice, replay

    run = part.function("run")
    for chunks, buffers, units in CASES:
        case = f"{chunks} chunks, {buffers} buffers, units {', '.join(f'{unit:g}' for unit in units)}"
        device = ReplayedDevice(chunks, buffers, units)
        part.call(run, device, chunks, case=case)
        _judge_values(part, device, case)
        _judge_time(part, device, replay(device.operations), case)
    part.note(f"right, and overlapped, in {len(CASES)} pipelines; 8 chunks take 10 units instead of 24")


def _judge_values(part: Part, device: ReplayedDevice, case: str) -> None:
    from streams import COMPUTE, COPY_OUT, count_wrong, find_hazards

    copies = [operation.writes for operation in device.operations if operation.engine == COPY_OUT]
    buffers = set(copies)
    if len(buffers) < device.chunks <= len(copies):
        says = f"{len(copies)} copies out went to the places of {len(buffers)} of the {device.chunks} chunks"
        raise Verdict("failed", "other", says, case)
    if len(buffers) < device.chunks:
        raise part.wrong("chunks-missing", case, given=len(buffers), chunks=device.chunks)
    computed = {operation.chunk for operation in device.operations if operation.engine == COMPUTE} - {None}
    if len(computed) < device.chunks:
        raise part.wrong("not-computed", case, given=len(computed), chunks=device.chunks)
    hazards = find_hazards(device.operations)
    wrong = count_wrong(device.operations, hazards, device.chunks, device.buffers)
    if hazards:
        raise part.wrong(_name(hazards), case, hazard=hazards[0], wrong=wrong, chunks=device.chunks)
    if wrong:
        raise part.wrong("computed-elsewhere", case, wrong=wrong, chunks=device.chunks)


def _name(hazards: Sequence[Hazard]) -> str:
    """Return the mistake that leads to the first of these hazards."""
    from streams import COMPUTE, COPY_IN, COPY_OUT

    first, second = hazards[0].first, hazards[0].second
    if second.engine == COPY_OUT:
        return "copy-out-early"
    if second.engine == COPY_IN:
        pairs = {hazard.first.engine for hazard in hazards if hazard.second is second}
        return "reuse-after-compute" if pairs == {COPY_OUT} and second.events else "reuse"
    early = second.engine == COMPUTE and any(
        event.stream == first.stream and event.queued <= first.number for event in second.events
    )
    return "recorded-early" if early else "compute-early"


def _judge_time(part: Part, device: ReplayedDevice, spans: Replay, case: str) -> None:
    from streams import best_units, overlap_percent

    sequential = device.chunks * sum(device.units.values())
    best = best_units(device.chunks, list(device.units.values()), device.buffers)
    if best == sequential:  # one buffer: nothing can overlap
        return
    percent = overlap_percent(spans.units, sequential, best)
    if percent >= SHARE:
        return
    if len({operation.stream for operation in device.operations}) == 1 < device.buffers:
        raise Verdict("open", sentence="everything is still in one stream", case=case)
    used = len({operation.buffer for operation in device.operations})
    if used < min(device.buffers, device.chunks, 3):
        raise part.wrong("fewer-buffers", case, percent=percent, used=used, buffers=device.buffers)
    if engines := _find_shared_stream(device.operations):
        raise part.wrong("shares-a-stream", case, percent=percent, engines=engines)
    late, needless = _find_needless_wait(device.operations)
    raise part.wrong("waits-too-much", case, percent=percent, late=late, needless=needless)


def _find_shared_stream(operations: Sequence[Operation]) -> str:
    """Return two kinds of operation that share a stream, as words, or an empty text if each kind has its own stream."""
    engines: dict[int, list[str]] = {}
    for operation in operations:
        kinds = engines.setdefault(operation.stream, [])
        if operation.engine not in kinds:
            kinds.append(operation.engine)
    return next((" and ".join(kinds) for kinds in engines.values() if len(kinds) > 1), "")


def _find_needless_wait(operations: Sequence[Operation]) -> tuple[object, object]:
    """Return the first operation whose stream waits for an operation on other memory, and that other operation."""
    for operation in operations:
        for event in operation.events:
            if event.after is not None and operations[event.after].buffer != operation.buffer:
                return operation, operations[event.after]
    return operations[-1], operations[-2]
