"""Judge my_seconds.py of 9.1: the time of each algorithm for many ranks, sizes and links, and the choices."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Case, Part, Way

WAYS = {
    "one-latency": Way(
        "{given} s instead of {right}: a latency is paid in every round, and {algorithm} has {rounds} with {ranks} ranks",
        ("return rounds * latency_s +", "return min(1, rounds) * latency_s +"),
    ),
    "bytes-twice": Way(
        "{given} s instead of {right}: a rank keeps one of {ranks} chunks to itself, so it sends 2(n-1)/n of the bytes, "
        "not twice all of them",
        ("2 * (ranks - 1) * size_bytes / ranks", "2 * size_bytes"),
    ),
    "one-way": Way(
        "{given} s instead of {right}: that is only the way to the sum. {algorithm} goes back as well, so that every rank "
        "has it",
        (
            '"halving": 2 * levels, "tree": 2 * levels}[algorithm]',
            '"halving": levels, "tree": levels}[algorithm]',
        ),
    ),
    "tree-sends-halves": Way(
        "{given} s instead of {right}: the messages of {algorithm} do not shrink. Each of {rounds} rounds sends the whole "
        "tensor",
        ("else rounds * size_bytes", "else 2 * (ranks - 1) * size_bytes / ranks"),
    ),
    "levels-rounded-down": Way(
        "{given} s instead of {right}: a tree of {ranks} ranks has {levels} levels: log2 is rounded up",
        ("levels = (ranks - 1).bit_length()", "levels = ranks.bit_length() - 1"),
    ),
    "not-a-power": Way(
        "you return {given} s for {algorithm} with {ranks} ranks: it needs a power of two, so raise ValueError",
        ('if algorithm in ("doubling", "halving") and ranks != 1 << levels:', "if ranks < 1:"),
    ),
    "chooses-the-impossible": Way(
        "for {ranks} ranks you choose {given}, which needs a power of two: leave out what is not possible",
        (
            '    possible = [name for name in algorithms if is_power or name in ("ring", "tree")]\n    return min(possible,',
            '    return next((name for name in algorithms if not is_power and name not in ("ring", "tree")), None) or min('
            "algorithms,",
        ),
    ),
    "chooses-the-slowest": Way(
        "for {ranks} ranks and {size_bytes:,} bytes you choose {given}, the slowest of {offered}; {right} is the fastest",
        ("return min(possible", "return max(possible"),
    ),
    "chooses-by-bytes": Way(
        "for {ranks} ranks and {size_bytes:,} bytes you choose {given}, which sends the fewest bytes; {right} is the "
        "fastest, as a message of a few bytes takes its latency",
        (
            "seconds(name, ranks, size_bytes, latency_s, bytes_per_s))",
            "seconds(name, ranks, size_bytes, 0.0, bytes_per_s))",
        ),
    ),
}
ALGORITHMS = ("ring", "doubling", "halving", "tree")
LINKS = ((10e-6, 50e9), (3e-6, 300e9), (0.5, 64.0))
RANKS, CHUNKS = (8, 2, 6, 3, 64, 5, 1), (4, 1000, 1 << 22)
OFFERED = (ALGORITHMS, ("ring", "doubling", "tree"), ("tree", "halving", "ring"), ("doubling", "ring"))


def _time(algorithm: str, ranks: int, size: float, latency: float, speed: float, *, wrong: str = "") -> float | None:
    """Return the right time, or the one that a known mistake gives. Return None if the algorithm is not possible."""
    levels, is_power = (ranks - 1).bit_length(), ranks & (ranks - 1) == 0
    if not is_power and algorithm in ("doubling", "halving"):
        return None
    if wrong == "levels-rounded-down":
        levels = ranks.bit_length() - 1
    rounds = {"ring": 2 * (ranks - 1), "doubling": levels, "halving": 2 * levels, "tree": 2 * levels}[algorithm]
    if wrong == "one-way" and algorithm in ("halving", "tree"):
        rounds = levels
    share = 2 * (ranks - 1) / ranks
    if wrong == "bytes-twice":
        share = 2.0
    sent = share * size if algorithm in ("ring", "halving") or wrong == "tree-sends-halves" else rounds * size
    return (min(1, rounds) if wrong == "one-latency" else rounds) * latency + sent / speed


def judge(part: Part) -> None:
    """Judge times with 1 to 64 ranks, refusals, and choices among some algorithms or all."""
    seconds, choose = part.function("seconds"), part.function("choose")
    cases: list[Case] = []
    for ranks in RANKS:
        for algorithm in ALGORITHMS:
            for chunk, (latency, speed) in zip(CHUNKS, LINKS, strict=True):
                cases += _judge_time(part, seconds, (algorithm, ranks, chunk * ranks, latency, speed))
    part.compare(cases, tolerance=1e-9)
    choices = [
        _judge_choice(part, choose, offered, ranks, size // ranks * ranks)
        for ranks in (8, 64, 6, 3)
        for size in (4 * ranks, 3000 * ranks, 1 << 20, 1 << 28)
        for offered in OFFERED
    ]
    part.compare(choices)
    part.note(f"right in {len(cases)} times and {len(choices)} choices")


def _judge_time(part: Part, seconds: Any, arguments: tuple[str, int, int, float, float]) -> list[Case]:
    """Return the case of one call. If the call should be refused and is not, raise the verdict."""
    algorithm, ranks, size, latency, speed = arguments
    name = f"seconds({algorithm!r}, {ranks}, {size}, {latency}, {speed})"
    right = _time(*arguments)
    if right is None:
        try:
            result = seconds(*arguments)
        except ValueError:
            return []
        except BaseException as error:  # noqa: BLE001  # the learner's code may raise anything
            raise part.make_verdict(error, name) from None
        raise part.wrong(
            "not-a-power",
            name,
            algorithm=algorithm,
            ranks=ranks,
            given=f"{result:.6g}" if isinstance(result, float) else repr(result)[:20],
        )
    result = part.call(seconds, *arguments, case=name)
    ways = {way: _time(*arguments, wrong=way) for way in list(WAYS)[:5]}
    rounds = {"ring": 2 * (ranks - 1), "doubling": (ranks - 1).bit_length()}.get(algorithm, 2 * (ranks - 1).bit_length())
    values = {"algorithm": algorithm, "rounds": rounds, "ranks": ranks, "levels": (ranks - 1).bit_length()}
    return [Case(name, result, right, ways, values)]


def _judge_choice(part: Part, choose: Any, offered: tuple[str, ...], ranks: int, size: int) -> Case:
    """Return the case of one choice. Raise the verdict if the chosen algorithm is not possible."""
    latency, speed = LINKS[0]
    name = f"choose({list(offered)}, {ranks}, {size}, {latency}, {speed})"
    result = part.call(choose, list(offered), ranks, size, latency, speed, case=name)
    times = {one: time for one in offered if (time := _time(one, ranks, size, latency, speed)) is not None}
    bytes_only = {one: _time(one, ranks, size, 0.0, speed) or 0.0 for one in times}
    right = min(times, key=times.__getitem__)
    if result in offered and result not in times:
        raise part.wrong("chooses-the-impossible", name, ranks=ranks, given=result)
    if result in times and times[result] <= times[right] * (1 + 1e-9):
        right = result  # equally fast
    fewest = min(bytes_only, key=bytes_only.__getitem__)
    if result in times and bytes_only[result] <= bytes_only[fewest] * (1 + 1e-9):
        fewest = result
    ways = {"chooses-the-slowest": max(times, key=times.__getitem__), "chooses-by-bytes": fewest}
    values = {"ranks": ranks, "size_bytes": size, "offered": ", ".join(times)}
    return Case(name, result, right, ways, values)
