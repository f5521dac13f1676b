"""Judge my_choice.py of 8.7 on real ranks: the token, what each rank sends for it, and groups that are not all ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpucourse.judge import Part, Verdict, Way

LIMIT_BYTES, START = 16, 100_000  # token numbers that 16 bits cannot hold
WAYS = {
    "number-in-a-slice": Way(
        "every rank returns {answer}, but token {right} has the best score: row {answer} of the rank that has it. A rank's "
        "rows begin at `first`",
        ("torch.tensor(float(place + first)", "torch.tensor(float(place)"),
    ),
    "own-best": Way(
        "the ranks return different tokens, {tokens}: each has looked at its own scores only, so their texts differ from here"
        " on",
        ("return int(max((pair.tolist() for pair in pairs), key=lambda pair: (pair[0], -pair[1]))[1])",
         "return place + first"),
        "the ranks return different tokens, {tokens}, but all ranks of a group need the same one",
    ),
    "all-scores": Way(
        "a rank passes {sent:,} bytes to collectives, but 16 are enough: of its scores, only the best one can win",
        (
            "    pairs = [torch.empty_like(pair) for",
            "    everything = [scores.clone() for _ in range(dist.get_world_size(group))]\n"
            "    dist.all_gather(everything, scores, group=group)\n    pairs = [torch.empty_like(pair) for",
        ),
        "a rank passes {sent:,} bytes to collectives, but 16 are enough",
    ),
    "packed-by-pickle": Way(
        "a rank passes {sent:,} bytes to collectives, but 16 are enough: all_gather_object sends a pickled text and its "
        "length. A tensor of two numbers has 16 bytes",
        (
            "pairs = [torch.empty_like(pair) for _ in range(dist.get_world_size(group))]\n"
            "    dist.all_gather(pairs, pair, group=group)\n"
            "    return int(max((pair.tolist() for pair in pairs)",
            "pairs = [None] * dist.get_world_size(group)\n"
            "    dist.all_gather_object(pairs, (float(scores[place]), place + first), group=group)\n"
            "    return int(max((pair for pair in pairs)",
        ),
        "a rank passes {sent:,} bytes to collectives, but 16 are enough",
    ),
    "last-of-equals": Way(
        "tokens {right} and {answer} have the same score, but you return the higher number: the lowest wins",
        ("(pair[0], -pair[1])", "(pair[0], pair[1])"),
    ),
    "rounded-number": Way(
        "with scores in bfloat16 it returns {answer} instead of {right}: bfloat16 has eight significant bits, so a token's "
        "number is rounded if you send it in that type",
        ("    pairs = [", "    pair = pair.to(scores.dtype)\n    pairs = ["),
    ),
    "rounded-score": Way(
        "the score of token {right} is {difference:.0e} higher than that of token {answer}, but float32 rounds both to the "
        "same number",
        ("scores[place].double()", "scores[place].float().double()"),
    ),
    "another-group": Way(
        "ranks 0 and 1 are a group, but you return {answer}, a token of ranks 2 and 3: pass `group` to every collective",
        (
            "range(dist.get_world_size(group))]\n    dist.all_gather(pairs, pair, group=group)",
            "range(dist.get_world_size())]\n    dist.all_gather(pairs, pair)",
        ),
    ),
}  # fmt: skip


class Trial(NamedTuple):
    """One choice: how many ranks, the scores of each token, their type, and how many ranks form a group."""

    name: str
    ranks: int
    scores: tuple[float, ...]
    dtype: str
    group: int


def _spread(count: int, best: int, *more: int) -> tuple[int, ...]:
    """Return the scores of `count` tokens. The tokens `best` and `more` share the highest score."""
    return tuple(90 if token in (best, *more) else token * 37 % 83 - 60 for token in range(count))


TRIALS = (
    Trial("1 rank", 1, _spread(7, 4), "float64", 1),
    Trial("4 ranks, the best on rank 2", 4, _spread(20, 13), "float64", 4),
    Trial("4 ranks, the best on rank 0", 4, _spread(20, 2), "float64", 4),
    Trial("3 ranks, equal scores on ranks 1 and 2", 3, _spread(21, 9, 16), "float32", 3),
    Trial("2 ranks, equal scores on rank 1", 2, _spread(20, 13, 17), "float32", 2),
    Trial("4 ranks, bfloat16", 4, _spread(400, 307), "bfloat16", 4),
    Trial("4 ranks, all scores below zero", 4, tuple(number - 200 for number in _spread(16, 13)), "float32", 4),
    Trial("2 ranks, scores 1 and 1 + 1e-8", 2, (0, 1, 0, 0, 1 + 1e-8, 0), "float64", 2),
    Trial("two groups of 2 ranks", 4, _spread(24, 21), "float64", 2),
)


def judge(part: Part) -> None:
    """Judge choices on 1 to 4 ranks, with equal scores, in 16 bits, with close scores, and in two groups at the same time."""
    choose = part.function("choose")
    for trial in TRIALS:
        results = part.on_ranks(trial.ranks, lambda rank, _, trial=trial: _choose(part, choose, trial, rank))
        _check(part, trial, results)
        if (sent := max(sent for _, sent in results)) > LIMIT_BYTES:
            raise _find_surplus(part, choose, trial, sent)
    part.note(f"{len(TRIALS)} choices, at most {LIMIT_BYTES} bytes a rank for each")


def _find_surplus(part: Part, choose: Any, trial: Trial, sent: int) -> Verdict:
    """Return the verdict on too many bytes. Scores are sent if twice as many scores take more bytes."""
    longer = trial._replace(scores=trial.scores * 2)
    results = part.on_ranks(trial.ranks, lambda rank, _: _choose(part, choose, longer, rank))
    if added := max(bytes_of_rank for _, bytes_of_rank in results) - sent:
        return part.wrong("all-scores", trial.name, output=added, sent=sent)
    return part.wrong("packed-by-pickle", trial.name, output=sent, sent=sent)


def _choose(part: Part, choose: Any, trial: Trial, rank: int) -> tuple[Any, int]:
    import torch
    import torch.distributed as dist
    from sent_bytes import SentBytes

    groups = [dist.new_group(list(range(at, at + trial.group))) for at in range(0, trial.ranks, trial.group)]
    each = len(trial.scores) // trial.ranks
    rows = torch.tensor(trial.scores[rank * each : (rank + 1) * each], dtype=getattr(torch, trial.dtype))
    with SentBytes() as sent:
        token = part.call(choose, rows, START + rank * each, groups[rank // trial.group], case=trial.name)
    return token.tolist() if hasattr(token, "tolist") else token, sent.bytes


def _check(part: Part, trial: Trial, results: list[tuple[Any, int]]) -> None:
    answers = [token for token, _ in results]
    if not all(type(token) is int for token in answers):
        raise Verdict("failed", "no-token", f"it returned {answers[0]!r:.60}, and a token's number is an int", trial.name)
    each = len(trial.scores) // trial.ranks
    for begin in range(0, trial.ranks, trial.group):
        tokens = range(begin * each, (begin + trial.group) * each)
        best = max(trial.scores[token] for token in tokens)
        equals = [START + token for token in tokens if trial.scores[token] == best]
        result = answers[begin : begin + trial.group]
        answer, right = result[0], equals[0]
        if set(result) == {right}:
            continue
        values = {"answer": answer, "right": right}
        if trial.group < trial.ranks and answer not in {START + token for token in tokens}:
            raise part.wrong("another-group", trial.name, **values)
        if set(result) == {(right - START) % each}:
            raise part.wrong("number-in-a-slice", trial.name, **values)
        if len(set(result)) > 1:
            raise part.wrong("own-best", trial.name, output=result, tokens=", ".join(map(str, result)))
        if answer in equals:
            raise part.wrong("last-of-equals", trial.name, **values)
        _name_rounding(part, trial, answer, right)
        raise Verdict("failed", "other", f"it returned {answer}, but token {right} has the highest score", trial.name)


def _name_rounding(part: Part, trial: Trial, answer: int, right: int) -> None:
    """Raise the verdict if the type of the message has rounded the token's number or its score."""
    import torch

    if trial.dtype == "bfloat16" and abs(answer - right) < START // 100:
        raise part.wrong("rounded-number", trial.name, answer=answer, right=right)
    if trial.dtype != "float64" or not 0 <= answer - START < len(trial.scores):
        return
    both = torch.tensor([trial.scores[token - START] for token in (right, answer)], dtype=torch.float64)
    if both.float().unique().numel() == 1:
        difference = float(both[0] - both[1])
        raise part.wrong("rounded-score", trial.name, answer=answer, right=right, difference=difference)
