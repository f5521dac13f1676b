"""The rows of 8.7: the results of all ranks, compared with one process and with the formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cards import CARDS
from expert_ranks import PER_TOKEN, WIDTH, Experts, draw_loads, place_experts
from slice_clock import LINKS, SliceClock
from sliced_model import KV_HEADS, count_slices, make_model
from small_llm import answer_alone
from step_clock import Clock

NUMBER = 8  # bytes of a float64
LINK_SLICES = (1, 2, 4, 8)
CACHED_TOKENS = 1000  # of each request of the simulated step
_LOADED_EXPERTS, _LOADED_RANKS = 32, 8
Rows = list[dict[str, Any]]


@dataclass
class Report:
    """Rows of a run with `ranks` ranks, for one prompt and an answer of `count` tokens."""

    ranks: int
    prompt: Sequence[int]
    count: int

    def __post_init__(self) -> None:
        self.model = make_model()
        self.alone, self.gap = answer_alone(self.model, self.prompt, self.count)
        head_bytes = 2 * len(self.model.layers) * self.model.head_dim * NUMBER
        self.cache_bytes = head_bytes * KV_HEADS * (len(self.prompt) + self.count - 1)
        self.piece_bytes = head_bytes * len(self.prompt)  # of one head of the prompt
        self.sums_bytes = 2 * len(self.model.layers) * self.model.width * NUMBER  # the all-reduces of a decode step

    def count_off(self, tokens: Sequence[int]) -> int:
        """Return how many tokens differ from those of one process."""
        return sum(token != right for token, right in zip(tokens, self.alone, strict=True))

    def list_slices(self, label: str, results: Sequence[Rows], choice_bytes: int | None = None) -> Rows:
        """Return a row for each number of slices. Each row has the figures of the fullest rank.

        `choice_bytes` are the bytes of choosing a token; None means the scores of a rank's part of the vocabulary.
        """
        rows = []
        for slices in count_slices(self.ranks):
            of_cut = [row for result in results for row in result if row["slices"] == slices]
            held = max(row["cache_bytes"] for row in of_cut)
            choice = self.model.vocabulary // slices * NUMBER if choice_bytes is None else choice_bytes
            rows.append(
                {
                    "label": f"{slices}, {label}", "who": label, "slices": slices,
                    "tokens_off": max(self.count_off(row["tokens"]) for row in of_cut),
                    "calls_per_step": max(row["calls"] for row in of_cut) / (self.count - 1),
                    "bytes_per_step": max(row["bytes"] for row in of_cut) / (self.count - 1),
                    "by_formula_bytes": self.sums_bytes + choice, "cache_bytes": held, "cache_share": held / self.cache_bytes,
                }
            )  # fmt: skip
        return rows

    def make_hand_over_row(self, label: str, results: Rows) -> dict[str, Any]:
        """Return the row of one hand-over."""
        return {
            "label": label, "bytes": sum(result["bytes"] for result in results),
            "most_by_one_bytes": max(result["bytes"] for result in results),
            "tokens_off": max(self.count_off(result["tokens"]) for result in results if result["tokens"] is not None),
        }  # fmt: skip

    def find_hand_over_bytes(self, senders: int, receivers: int) -> tuple[int, int]:
        """Return the bytes of a hand-over by formula: of all senders together, and of the busiest one."""
        pieces = receivers * max(1, KV_HEADS // receivers)
        return pieces * self.piece_bytes, -(-pieces // senders) * self.piece_bytes


def find_experts_bytes(layer: Experts, ranks: int) -> int:
    """Return the most bytes that may leave their ranks: a token sends one row to each rank of its experts, and gets one back.

    The numbers and gates of all tokens may go to all ranks, and `ranks` + 8 sizes may go from each rank to each rank.
    """
    companions = (2 * PER_TOKEN * len(layer.x) + (ranks + 8) * ranks) * ranks
    return (layer.count_leaving_rows(ranks) * 2 * WIDTH + companions) * NUMBER


def find_bytes_by_expert(layer: Experts, ranks: int) -> int:
    """Return the bytes that leave their rank if a token sends a row and a number for each expert, and gets a row back."""
    return layer.count_leaving(ranks) * (2 * WIDTH + 1) * NUMBER


def find_heaviest(layer: Experts, ranks: int) -> float:
    """Return the load of the busiest rank, divided by the mean load."""
    return max(layer.list_loads(ranks)) * ranks / (PER_TOKEN * len(layer.x))


def list_steps(card: str, gpu: str, batch: int) -> Rows:
    """Return a row with the simulated time of a decode step for each link and number of slices."""
    rows = []
    for link in LINKS:
        for slices in LINK_SLICES:
            clock = SliceClock(Clock(card, gpu), slices, link)
            all_reduces_ms = 2 * CARDS[card].layers * clock.all_reduce_ns(batch) / 1e6
            row = {"link": LINKS[link].title, "ranks": slices, "sim_all_reduces_ms": all_reduces_ms}
            rows.append(row | {"sim_decode_ms": clock.ns([(CACHED_TOKENS, 1)] * batch) / 1e6})
    return rows


def find_speed_up(steps: Rows, link: str) -> float:
    """Return how many times as fast a decode step is with 8 slices as with 2."""
    step_ms = {row["ranks"]: row["sim_decode_ms"] for row in steps if row["link"] == LINKS[link].title}
    return step_ms[2] / step_ms[8]


def list_placements() -> Rows:
    """Return a row for each placement of 32 experts with very different loads on 8 ranks.

    A row has the places for experts, and the load of the busiest rank, divided by the mean.
    """
    loads = draw_loads(_LOADED_EXPERTS)
    mean, each = sum(loads) / _LOADED_RANKS, _LOADED_EXPERTS // _LOADED_RANKS
    in_order = [sum(loads[place : place + each]) for place in range(0, _LOADED_EXPERTS, each)]
    rows = [{"placement": "in order of numbers", "places": _LOADED_EXPERTS, "heaviest_over_mean": max(in_order) / mean}]
    for extra, name in ((0, "by load"), (1, "8 copies"), (2, "16 copies")):
        heaviest = max(place_experts(loads, _LOADED_RANKS, each + extra))
        places = _LOADED_EXPERTS + extra * _LOADED_RANKS
        rows.append({"placement": name, "places": places, "heaviest_over_mean": heaviest / mean})
    return rows
