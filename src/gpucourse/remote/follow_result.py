"""The end of a run, as far as the follower saw it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucourse.errors import GpucourseError, UnreachableError
from gpucourse.model.diagnosis import Silence
from gpucourse.model.record import NodeExit, RankExit
from gpucourse.model.slurm import JobRow, LaterJob


@dataclass(kw_only=True)
class FollowResult:
    """The end of the run, as far as the follower saw it.

    `silences`: the ranks that were reported as silent and have printed nothing since.
    `skew_s`: how far each node's clock is ahead of this computer's.
    `jobs`: the run's Slurm jobs.
    `later_jobs`: the jobs that these submitted and that have not ended.
    `detached`: whether the follower left before the end.
    `max_restarts`: how often torchrun may restart all ranks.
    """

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
        """Return how often torchrun has restarted all ranks, according to the ranks that ended."""
        return max((rank.restart for rank in self.rank_exits), default=0)

    @property
    def has_failed(self) -> bool:
        """Return whether the run can no longer succeed, because a launcher failed, or a rank failed and will not be
        restarted."""
        failed_ranks = (rank for rank in self.rank_exits if rank.code and not self.may_begin_again(rank))
        return any(node.code for node in self.node_exits) or any(failed_ranks)

    @property
    def first_failure(self) -> RankExit | None:
        """Return the rank that made the run fail, or None if the run may still succeed or has succeeded."""
        return self.find_first_failure(self.restarts) if self.has_failed else None

    def may_begin_again(self, end: RankExit) -> bool:
        """Return whether torchrun may restart a rank, because the rank failed and restarts are left."""
        return end.code != 0 and end.restart < self.max_restarts

    def find_first_failure(self, restart: int) -> RankExit | None:
        """Return the rank that failed first after that restart. The other ranks often fail because of it. The times are
        corrected to one clock."""
        failed_ranks = (rank for rank in self.rank_exits if rank.code and rank.restart == restart)
        return min(failed_ranks, key=lambda rank: rank.at - self.skew_s.get(rank.node, 0.0), default=None)

    def describe_failure(self, end: RankExit) -> str:
        """Describe in one sentence which rank failed and whether torchrun restarts it."""
        sentence = f"rank {end.rank} on {end.node} failed with exit code {end.code}"
        if self.may_begin_again(end):
            return f"{sentence}; torchrun starts all ranks again (restart {end.restart + 1} of {self.max_restarts})"
        restart_count = f"{self.max_restarts} restart{'s' if self.max_restarts > 1 else ''}"
        return f"{sentence}; none of {restart_count} is left" if self.max_restarts else sentence


class FollowBroken(UnreachableError):
    """Some nodes could no longer be reached. `result` contains what was seen until then; the logs are on disk."""

    def __init__(self, error: GpucourseError, result: FollowResult) -> None:
        super().__init__(error.what, hint=error.hint)
        self.result = result
