"""Judges my_bandwidth.py of 3.3 by the factors in doc/PERFORMANCE.md of nccl-tests."""

from __future__ import annotations

from gpucourse.judge import Case, Part, Way

WAYS = {
    "algbw": Way(
        "this is the algorithm bandwidth, size divided by time: it is what the caller sees, not what the link carried. An "
        "all_reduce over {ranks} ranks sends each byte {factor:.3g} times over the busiest link",
        ("* factor", ""),
    ),
    "always-two": Way(
        "you doubled it: the factor of all_reduce is 2(n-1)/n, which is 1 for two ranks. It is nearly 2 only with many ranks",
        ("2 * share", "2"),
    ),
    "all-alike": Way(
        "you used the factor of all_reduce for every collective. {collective} has {factor:.3g}: it does one half of what "
        "all_reduce does, or sends each byte once",
        (
            '"broadcast": 1.0, "all_gather": share, "reduce_scatter": share',
            '"broadcast": 2 * share, "all_gather": 2 * share, "reduce_scatter": 2 * share',
        ),
    ),
    "broadcast-shared": Way(
        "you used the factor (n-1)/n for broadcast. Before an all_gather each rank already has its own part; before a "
        "broadcast only the root has anything, so each byte crosses every link once: its factor is 1",
        ('"broadcast": 1.0', '"broadcast": share'),
    ),
    "ranks-upside-down": Way(
        "you multiplied by n/(n-1) instead of (n-1)/n: with more ranks, each rank sends more, not less",
        ("(ranks - 1) / ranks", "ranks / (ranks - 1)"),
    ),
    "bytes-a-second": Way(
        "these are bytes per second; the result has to be in GB/s, where GB = 10**9 bytes",
        ("size / seconds / 1e9 * factor", "size / seconds * factor"),
    ),
    "bits": Way(
        "you multiplied by 8: data sheets of networks give Gbit/s, but the result has to be in GB/s",
        ("size / seconds / 1e9", "8 * size / seconds / 1e9"),
    ),
    "part-for-whole": Way(
        "you took `size` for the part of one rank, but it is the whole tensor: for all_gather what each rank holds "
        "afterwards, for reduce_scatter what each rank contributes",
        (
            "size / seconds / 1e9 * factor",
            'size * (ranks if collective in ("all_gather", "reduce_scatter") else 1) / seconds / 1e9 * factor',
        ),
    ),
    "gibibytes": Way("you divided by 2**30: the data sheets of links count GB of 10**9 bytes", ("1e9", "2**30")),
}

INPUTS = ((4e9, 0.5, 2), (1e9, 0.25, 4), (3e6, 0.001, 8), (64.0, 2e-5, 3), (8e8, 0.01, 64))  # bytes, seconds, ranks


def judge(part: Part) -> None:
    """Judge every collective at four sizes and numbers of ranks."""
    busbw = part.function("busbw")
    cases = []
    for size, seconds, ranks in INPUTS:
        share = (ranks - 1) / ranks
        algbw = size / seconds / 1e9
        for collective, factor in _factors(share).items():
            name = f"{collective} of {size:,.0f} bytes in {seconds:g} s over {ranks} ranks"
            ways = {
                "algbw": algbw,
                "always-two": algbw * (2 if collective == "all_reduce" else factor),
                "all-alike": algbw * 2 * share,
                "broadcast-shared": algbw * (share if collective == "broadcast" else factor),
                "ranks-upside-down": algbw * _factors(1 / share)[collective],
                "bytes-a-second": algbw * factor * 1e9,
                "bits": 8 * algbw * factor,
                "part-for-whole": algbw * factor * (ranks if collective in ("all_gather", "reduce_scatter") else 1),
                "gibibytes": algbw * factor * 1e9 / 2**30,
            }
            answer = part.call(busbw, collective, size, seconds, ranks, case=name)
            values = {"ranks": ranks, "factor": factor, "collective": collective}
            cases.append(Case(name, answer, algbw * factor, ways, values))
    part.compare(cases)
    part.note(f"right for four collectives at {len(INPUTS)} sizes and numbers of ranks")


def _factors(share: float) -> dict[str, float]:
    return {"all_reduce": 2 * share, "broadcast": 1.0, "all_gather": share, "reduce_scatter": share}
