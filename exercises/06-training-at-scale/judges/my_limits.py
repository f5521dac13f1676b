"""Judge my_limits.py of 6.3: the largest numbers of ranks, against two queues that are replayed message by message.

The file exposed.json of the exercise contains what `record` returns for each cluster.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from step_limits import CLUSTERS, MAX_RANKS, Cluster
from step_limits import WAYS as PARALLEL_WAYS

from gpucourse.judge import Case, Part, Way

WAYS = {
    "inside-alone": Way(
        "you returned {given} ranks, but {right} is right: more than {node} ranks are on several nodes, and the ring is as "
        "slow as the link between nodes",
        ('cluster["inside_bytes_per_s"] if ranks <= cluster["ranks_per_node"] else cluster["between_bytes_per_s"]',
         'cluster["inside_bytes_per_s"]'),
    ),
    "between-alone": Way(
        "you returned {given} ranks, but {right} is right: up to {node} ranks are on one node, and use its faster links",
        ('cluster["inside_bytes_per_s"] if ranks <= cluster["ranks_per_node"] else cluster["between_bytes_per_s"]',
         'cluster["between_bytes_per_s"]'),
    ),
    "work-not-divided": Way(
        "you returned {given} ranks, but {right} is right: the batch is the same for any number of ranks, so each rank "
        "computes for less time while its messages are sent",
        ("2 * weights * tokens / ranks /", "2 * weights * tokens /"),
    ),
    "sent-once": Way(
        "you returned {given} ranks, but {right} is right: in a sum of b bytes each rank sends 2 (n - 1) / n of b",
        ("        return 2 * weights * cluster", "        return weights * cluster"),
    ),
    "no-sum-of-shares": Way(
        "you returned {given} ranks, but {right} is right: in backward weights are gathered and gradients are scattered, over "
        "the same link",
        ("gather_s + scatter_s <= 2", "max(gather_s, scatter_s) <= 2"),
    ),
    "not-divisible": Way(
        "you returned {given} ranks, but {right} is right: each rank needs equally many whole sequences, or whole heads",
        ("    if divided % ranks:\n        return False\n", ""),
    ),
    "mean-of-both": Way(
        "you returned {given} ranks, but {right} is right: forward has as many sums as backward, but computes half as long",
        ("once_s <= forward_s\n", "once_s <= 1.5 * forward_s\n"),
    ),
    "hides-behind-all": Way(
        "you returned {given} ranks, but {right} is right: gradients exist only in backward, so they cannot be sent in forward",
        ('cluster["gradient_bytes"] * once_s <= 2 * forward_s', 'cluster["gradient_bytes"] * once_s <= 3 * forward_s'),
    ),
    "one-size-of-number": Way(
        "you returned {given} ranks, but {right} is right: gradients have {gradient} bytes a number here, and weights {weight}",
        ('2 * weights * cluster["gradient_bytes"]', '2 * weights * cluster["weight_bytes"]'),
    ),
    "one-too-many": Way(
        "you returned {given} ranks, but {right} is right: with your number, computing already waits",
        ("    return ranks\n\n\ndef hides", "    return min(2 * ranks, 4096)\n\n\ndef hides"),
    ),
}  # fmt: skip
MARGIN = 1.04
"""Links this much slower or faster must not change the result, so that no case depends on rounding."""


def judge(part: Part) -> None:
    """Compare the number of ranks for each way on the clusters of the run and on others."""
    largest = part.function("largest")
    clusters = _make_clusters()
    cases = []
    for way in PARALLEL_WAYS:
        for cluster in clusters:
            right = find_largest(way, cluster)
            name = f"{way} parallelism of {cluster.name}"
            answer = part.call(largest, way, cluster.describe(), case=name)
            values = {"node": cluster.ranks_per_node, "gradient": cluster.gradient_bytes, "weight": cluster.weight_bytes}
            knobs = {"way": way, "cluster": cluster.name}
            cases.append(Case(name, answer, right, _list_mistakes(way, cluster, right), values, knobs))
    part.compare(cases)
    part.note(f"right for three ways on {len(clusters)} clusters, by replaying 80 layers of each")


def _make_clusters() -> list[Cluster]:
    """Return the clusters of the run and twelve others, none with a result that depends on rounding."""
    chance, clusters = random.Random(6), list(CLUSTERS)
    while len(clusters) < 15:
        width = 2 ** chance.randint(9, 13)
        cluster = Cluster(
            f"cluster {len(clusters)}", width, width // 128, 2 ** chance.randint(9, 13), chance.choice([24, 96, 256, 1024]),
            chance.choice([1, 2]), chance.choice([2, 4]), chance.choice([2e13, 1e14, 8e14]), chance.choice([4, 8]),
            chance.choice([5e9, 5e10, 4e11]), chance.choice([1e9, 2.5e10, 1e11]),
        )  # fmt: skip
        if cluster.between_bytes_per_s < cluster.inside_bytes_per_s and all(_is_clear(way, cluster) for way in PARALLEL_WAYS):
            clusters.append(cluster)
    return clusters


def _is_clear(way: str, cluster: Cluster) -> bool:
    speeds = cluster.inside_bytes_per_s, cluster.between_bytes_per_s
    variants = [replace(cluster, inside_bytes_per_s=speeds[0] * factor, between_bytes_per_s=speeds[1] * factor)
               for factor in (1 / MARGIN, MARGIN)]  # fmt: skip
    return len({find_largest(way, variant) for variant in (cluster, *variants)}) == 1


def _list_mistakes(way: str, cluster: Cluster, right: int) -> dict[str, int]:
    """Return, for each mistake, the number of ranks that a part with this mistake returns."""

    def count(*, work: float = 1.0, sent: float = 1.0, undivided: bool = False, other: Cluster = cluster) -> int:
        ranks = 1
        while ranks < MAX_RANKS and can_divide(way, 2 * ranks, other):
            forward_s, backward_s, messages = find_times(way, 2 * ranks, other)
            factor = work * (2 * ranks if undivided else 1)
            slower = {kind: seconds * sent for kind, seconds in messages.items()}
            waits = [count_waits(layers, forward_s * factor, backward_s * factor, slower) for layers in (40, 80)]
            if waits[1] - waits[0] > 1e-4 * 40 * (forward_s + backward_s):
                break
            ranks *= 2
        return ranks

    far, near = cluster.between_bytes_per_s, cluster.inside_bytes_per_s
    mistakes = {
        "inside-alone": count(other=replace(cluster, between_bytes_per_s=near)),
        "between-alone": count(other=replace(cluster, inside_bytes_per_s=far)),
        "work-not-divided": count(undivided=True),
        "not-divisible": count(other=replace(cluster, heads=MAX_RANKS, sequences=cluster.sequences * MAX_RANKS,
                                             length=cluster.length / MAX_RANKS)),  # type: ignore[arg-type]
        "one-too-many": min(2 * right, MAX_RANKS),
    }  # fmt: skip
    if way == "data":
        mistakes |= {
            "sent-once": count(sent=0.5), "hides-behind-all": count(work=1.5),
            "one-size-of-number": count(other=replace(cluster, gradient_bytes=cluster.weight_bytes)),
        }  # fmt: skip
    if way == "sharded":
        larger = max(cluster.gradient_bytes, cluster.weight_bytes) / (cluster.gradient_bytes + cluster.weight_bytes)
        gathers = find_largest(way, replace(cluster, gradient_bytes=cluster.weight_bytes))
        mistakes["no-sum-of-shares"] = min(gathers, count(sent=larger))
    if way == "tensor":
        mistakes["mean-of-both"] = count(work=1.5)
    return mistakes


def record(name: str) -> dict[str, dict[str, float]]:
    """Return the entry of a cluster in exposed.json: for each way, the exposed percentage at each power of two."""
    cluster = next(cluster for cluster in CLUSTERS if cluster.name == name)
    powers = [2**power for power in range(MAX_RANKS.bit_length() + 1)]
    return {
        way: {str(ranks): round(max(0.0, find_exposed_percent(way, ranks, cluster)), 3) for ranks in powers}
        for way in PARALLEL_WAYS
    }


def count_waits(layers: int, forward_s: float, backward_s: float, messages: Mapping[str, float]) -> float:
    """Return how many seconds computing waits for messages in one step of that many layers.

    A rank computes forward layer by layer, then backward, while a second queue sends one message after the other. `messages`
    has the seconds of each kind; a kind that is missing takes no time.

    `before_forward`, `before_backward`: sent for a layer while the layer before it computes; the layer needs it.
    `after_backward`: sent as soon as the layer's backward is done.
    `forward_half`, `backward_half`: sent after each of two halves of the batch; the same half of the next layer needs it.
    """
    clock = link = waits = 0.0
    halves = [0.0, 0.0]
    for phase, seconds in (("forward", forward_s), ("backward", backward_s)):
        before, half = messages.get(f"before_{phase}", 0.0), messages.get(f"{phase}_half", 0.0)
        after = messages.get("after_backward", 0.0) if phase == "backward" else 0.0
        ready = clock if not before else max(clock, link) + before
        link = max(link, ready)
        for _ in range(layers):
            waits, clock = waits + max(0.0, ready - clock), max(clock, ready)
            if before:
                link = max(link, clock) + before  # for the next layer
                ready = link
            for number in (0, 1):
                waits, clock = waits + max(0.0, halves[number] - clock), max(clock, halves[number])
                clock += seconds / 2
                if half:
                    link = halves[number] = max(link, clock) + half
            if after:
                link = max(link, clock) + after
    return waits + max(0.0, link - clock)


def find_times(way: str, ranks: int, cluster: Cluster) -> tuple[float, float, dict[str, float]]:
    """Return the seconds of a layer's forward and backward on one of that many ranks, and of its messages."""
    tokens, weights = cluster.sequences * cluster.length, 12 * cluster.width**2
    forward_s = 2 * weights * tokens / ranks / cluster.flop_per_s
    speed = cluster.inside_bytes_per_s if ranks <= cluster.ranks_per_node else cluster.between_bytes_per_s
    once_s = (ranks - 1) / ranks / speed
    if way == "data":
        messages = {"after_backward": 2 * once_s * weights * cluster.gradient_bytes}
    elif way == "sharded":
        gather_s = once_s * weights * cluster.weight_bytes
        messages = {"before_forward": gather_s, "before_backward": gather_s,
                    "after_backward": once_s * weights * cluster.gradient_bytes}  # fmt: skip
    else:
        sums_s = 2 * 2 * once_s * tokens * cluster.width * cluster.weight_bytes
        messages = {"forward_half": sums_s / 2, "backward_half": sums_s / 2}
    return forward_s, 2 * forward_s, messages


def find_exposed_percent(way: str, ranks: int, cluster: Cluster) -> float:
    """Return how much longer a step waits with each further layer, in percent of the time in which that layer computes.

    The first and the last message of a step have nothing to hide behind. They are not counted, because they occur only once.
    """
    forward_s, backward_s, messages = find_times(way, ranks, cluster)
    further_s = count_waits(80, forward_s, backward_s, messages) - count_waits(40, forward_s, backward_s, messages)
    return 100 * further_s / 40 / (forward_s + backward_s)


def can_divide(way: str, ranks: int, cluster: Cluster) -> bool:
    """Return whether each rank gets equally many whole sequences or whole heads."""
    return (cluster.heads if way == "tensor" else cluster.sequences) % ranks == 0


def find_largest(way: str, cluster: Cluster) -> int:
    """Return the largest number of ranks, a power of two, with which messages are hidden."""
    ranks = 1
    while ranks < MAX_RANKS and can_divide(way, 2 * ranks, cluster) and find_exposed_percent(way, 2 * ranks, cluster) < 0.01:
        ranks *= 2
    return ranks
