"""The end of a run, as far as the follower saw it: nodes, ranks and their restarts."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucourse.errors import GpucourseError, UnreachableError
from gpucourse.model.diagnosis import Silence
from gpucourse.model.record import NodeExit, RankExit
from gpucourse.model.slurm import JobRow, LaterJob


@dataclass(kw_only=True)
class FollowResult:
    """The end of the run, as far as it was seen. `silences`: the ranks that were reported as silent and stayed silent.
    `skew_s`: how far each node's clock is ahead. `jobs`: the run's Slurm jobs; `later_jobs`: the jobs that these submitted and
    that still run. `detached`: the follower left before the end. `max_restarts`: how often torchrun may restart all ranks."""

    node_exits: list[NodeExit] = field(default_factory=list)
    rank_exits: list[RankExit] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)
    skew_s: dict[str, float] = field(default_factory=dict)
    jobs: list[JobRow] = field(default_factory=list)
    later_jobs: list[LaterJob] = field(default_factory=list)
    full_logs: list[str] = field(default_factory=list)
    detached: bool = False
    max_restarts: int = 0

    @property
    def restarts(self) -> int:
        """Return how often torchrun has restarted all ranks, as far as the ends of ranks show."""
        return max((rank.restart for rank in self.rank_exits), default=0)

    @property
    def has_failed(self) -> bool:
        """Return whether the run can no longer succeed: a launcher gave up, or a rank failed and will not be restarted."""
        failed_ranks = (rank for rank in self.rank_exits if rank.code and not self.may_begin_again(rank))
        return any(node.code for node in self.node_exits) or any(failed_ranks)

    @property
    def first_failure(self) -> RankExit | None:
        """Return the rank that made the run fail; None while torchrun may restart it, or if the run succeeded after a
        restart."""
        return self.find_first_failure(self.restarts) if self.has_failed else None

    def may_begin_again(self, end: RankExit) -> bool:
        """Return whether torchrun may restart that rank: it failed, and restarts are left."""
        return end.code != 0 and end.restart < self.max_restarts

    def find_first_failure(self, restart: int) -> RankExit | None:
        """Return the rank that failed first since that restart, by times corrected to one clock; the others often fail because
        of it."""
        failed_ranks = (rank for rank in self.rank_exits if rank.code and rank.restart == restart)
        return min(failed_ranks, key=lambda rank: rank.at - self.skew_s.get(rank.node, 0.0), default=None)

    def describe_failure(self, end: RankExit) -> str:
        """Return a sentence about a rank that failed, and what torchrun does about it."""
        sentence = f"rank {end.rank} on {end.node} failed with exit code {end.code}"
        if self.may_begin_again(end):
            return f"{sentence}; torchrun starts all ranks again (restart {end.restart + 1} of {self.max_restarts})"
        restart_count = f"{self.max_restarts} restart{'s' if self.max_restarts > 1 else ''}"
        return f"{sentence}; none of {restart_count} is left" if self.max_restarts else sentence


class FollowBroken(UnreachableError):
    """Some nodes could no longer be reached. `result` is what was seen until then; the logs so far are on disk."""

    def __init__(self, error: GpucourseError, result: FollowResult) -> None:
        super().__init__(error.what, hint=error.hint)
        self.result = result
