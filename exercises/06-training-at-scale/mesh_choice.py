"""Get the results of a learner's my_mesh.py: the place of each rank, the groups, and the bytes between nodes."""

from __future__ import annotations

import importlib
import itertools
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import step_limits
import torch
from bench import limit_time
from mesh_model import DIMENSIONS, Layout, lay_out
from mesh_traffic import MessageBytes

DELIVERED = ("tp", "pp", "dp")  # the order of the mesh if my_mesh.py does not set another one
LIMIT_S = 5.0


class Choice:
    """Calls my_mesh.py. `broken` is its error, or "" without one; an unwritten function is not an error.

    Use it on one rank only, and send the results to the others, because a learner's code may return something else on
    another call.
    """

    def __init__(self) -> None:
        self.broken = ""
        self._module: Any = self._ask(lambda: importlib.import_module("my_mesh"))
        order = getattr(self._module, "ORDER", None)
        if not isinstance(order, Sequence) or sorted(map(str, order)) != sorted(DIMENSIONS):
            self.broken = self.broken or f"ORDER is {order!r}: it must hold each of dp, pp and tp once"
            order = DELIVERED
        self.order = tuple(order)

    def place_ranks(self, layout: Layout) -> torch.Tensor | None:
        """Return the rank at each place (dp, pp, tp), by the learner's `coordinates`, or None if it is not written or wrong.

        A place that differs from `order` counts as wrong: stages whose rank numbers decrease would wait for ever.
        """
        mesh = lay_out(layout, self.order)
        for rank in range(layout.size):
            at = self._ask(lambda rank=rank: self._module.coordinates(rank, _sizes(layout), self.order))
            if at is None:
                return None
            place = dict(zip(DIMENSIONS, (mesh == rank).nonzero()[0].tolist(), strict=True))
            if at != place:
                self.broken = f"coordinates returns {str(at)[:100]} for rank {rank} of {layout}, which ORDER puts elsewhere"
                return None
        return mesh

    def count_wrong_groups(self, layout: Layout, mesh: torch.Tensor) -> int | None:
        """Return how many groups of the mesh are missing in the learner's `groups`, or None if it is not written or fails."""
        missing = 0
        for axis, name in enumerate(DIMENSIONS):
            answer = self._ask(
                lambda name=name: [list(group) for group in self._module.groups(name, _sizes(layout), self.order)]
            )
            if answer is None:
                return None
            groups = mesh.movedim(axis, -1).reshape(-1, mesh.shape[axis]).tolist()
            missing += sum(group not in answer for group in groups) + max(0, len(answer) - len(groups))
        return missing

    def predict_bytes(self, layout: Layout, ranks_per_node: int, message_bytes: Sequence[MessageBytes]) -> float | None:
        """Return the result of the learner's `cross_node_bytes`, or None if there is none.

        `message_bytes` is what a rank of each stage sends.
        """
        by_stage = {name: [row[name] for row in message_bytes] for name in ("dp", "tp")}
        by_kind = {**by_stage, "pp": message_bytes[0]["pp forward"]}
        return self._ask(lambda: float(self._module.cross_node_bytes(_sizes(layout), self.order, ranks_per_node, by_kind)))

    def _ask(self, question: Callable[[], Any]) -> Any:
        if self.broken:
            return None
        try:
            with limit_time(LIMIT_S):
                return question()
        except NotImplementedError:
            return None
        except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way; the error is shown
            self.broken = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
            traceback.print_exception(error, limit=-3, file=sys.stdout)
            return None


def ask_limits() -> tuple[list[dict[str, Any]], str]:
    """Return a row for each cluster and way with the learner's largest number of ranks, and the error of my_limits.py, or "".

    A row also has how much longer a step waits with each further layer (see `step_limits.read_exposed_percent`), with that
    number of ranks and with twice as many.
    """
    rows: list[dict[str, Any]] = []
    error_text = ""
    for cluster, way in itertools.product(step_limits.CLUSTERS, step_limits.WAYS):
        answer = None
        if not error_text:
            try:
                with limit_time(LIMIT_S):
                    answer = int(importlib.import_module("my_limits").largest(way, cluster.describe()))
            except NotImplementedError:
                answer = None
            except Exception as error:  # noqa: BLE001  # as above
                error_text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
                traceback.print_exception(error, limit=-3, file=sys.stdout)
        possible = answer is not None and 1 <= answer <= step_limits.MAX_RANKS
        waits = [step_limits.read_exposed_percent(way, times * answer, cluster) if possible else None for times in (1, 2)]
        rows.append({
            "cluster": cluster.name, "way": way, "yours": answer, "exposed_percent": waits[0],
            "exposed_twice_percent": waits[1], "is_right": None if answer is None else waits[0] == 0 and bool(waits[1]),
        })  # fmt: skip
    return rows, error_text


def _sizes(layout: Layout) -> dict[str, int]:
    return {name: getattr(layout, name) for name in DIMENSIONS}
