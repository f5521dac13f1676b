"""Follow a run on every node. Each log is written to disk here byte for byte, even if the connection is cut and made again."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from gpucourse.errors import GpucourseError, NodeUntrusted, UnreachableError
from gpucourse.guard import Guard
from gpucourse.model.diagnosis import Silence
from gpucourse.model.event import LogBytes, Note, RankEvent, Watcher
from gpucourse.model.node import Node
from gpucourse.model.record import MAX_RANKS, NodeExit, RankExit
from gpucourse.model.slurm import JobRow, LaterJob
from gpucourse.remote import answers, jobs
from gpucourse.remote.agent import frames
from gpucourse.remote.execute import make_thread_safe
from gpucourse.remote.fleet import Fleet, Outcome, combine_errors
from gpucourse.remote.logfile import MAX_LOGS, LogFile, LogOwner, count_possible_logs, find_logs, make_question
from gpucourse.remote.patience import extra_s
from gpucourse.remote.silence import SilenceMonitor, look, sentences
from gpucourse.workspace.paths import RunPaths


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
        """Return the rank that failed first after that restart. The other ranks often fail because of that failure. The times
        are corrected to one clock."""
        failed_ranks = (rank for rank in self.rank_exits if rank.code and rank.restart == restart)
        return min(failed_ranks, key=lambda rank: rank.at - self.skew_s.get(rank.node, 0.0), default=None)

    def describe_failure(self, end: RankExit) -> str:
        """Describe in one sentence which rank failed and whether torchrun restarts it."""
        sentence = f"rank {end.rank} on {end.node} failed with exit code {end.code}"
        if self.may_begin_again(end):
            return f"{sentence}; torchrun starts all ranks again (restart {end.restart + 1} of {self.max_restarts})"
        used = f"{self.max_restarts} of {self.max_restarts} used"
        return f"{sentence}; no restart is left ({used})" if self.max_restarts else sentence


class FollowBroken(UnreachableError):
    """Some nodes could no longer be reached. `result` contains what was seen until then; the logs are on disk."""

    def __init__(self, error: GpucourseError, result: FollowResult) -> None:
        super().__init__(error.what, hint=error.hint)
        self.result = result


SILENCE_S = 15.0
"""The agent sends a heartbeat every half second. After this time without one, the connection counts as cut."""

_SETTLED_S = 0.3
"""The time to wait for other ranks' reports. When one rank ends, the others end within milliseconds, and their reports may
arrive in any order."""

_MAX_RANK_EXITS = 8192
_RANK_REPORT = "its report on the end of a rank"

_TERMINATED, _TERMINATED_S = 143, 2.0
"""The exit code after SIGTERM, and the time to wait for the node's report. Usually the time limit or a person stopped the rank,
and its node reports that soon afterwards."""


@dataclass(frozen=True, kw_only=True)
class FollowedJob:
    """A run to follow.

    `nodes`: the nodes of the run.
    `paths`: the files of the run here.
    `log_limit`: the maximum number of bytes of each log to keep. If a log exceeds it, the watcher is informed and the run
    continues.
    `world_size`: how many ranks were started.
    `max_restarts`: how often torchrun may restart them.
    `skew_s`: how far each node's clock is ahead of this computer's.
    `scheduled`: whether the run is under Slurm. Then one node sends all logs.
    `hosts`: the nodes on which Slurm may start ranks, or None if they are unknown. A log of any other node is refused.
    """

    run_id: str
    nodes: Sequence[Node]
    paths: RunPaths
    log_limit: int | None = None
    world_size: int | None = None
    max_restarts: int = 0
    skew_s: Mapping[str, float] = field(default_factory=dict)
    scheduled: bool = False
    hosts: Collection[str] | None = None


@dataclass(frozen=True, kw_only=True)
class FollowTimes:
    """The time limits for following a run.

    `limit_s`: the limit in total, plus the time that the logs need at `patience.PACE`.
    `until`: the latest end, on the monotonic clock.
    `grace_s`: after the first failure, how long the other ranks may run before they are cancelled.
    `give_up_s`: how long to retry after a connection was cut.
    `silence_s`: how long a connection may be silent before it counts as cut.
    """

    limit_s: float | None = None
    until: float | None = None
    grace_s: float = 5.0
    give_up_s: float = 30.0
    silence_s: float = SILENCE_S

    def is_over(self, seconds: float, byte_count: int) -> bool:
        """Return whether a time limit has passed after `seconds`, if `byte_count` bytes of logs have arrived."""
        if self.until is not None and time.monotonic() >= self.until:
            return True
        return self.limit_s is not None and seconds >= self.limit_s + extra_s(byte_count)


def follow(
    fleet: Fleet,
    job: FollowedJob,
    watcher: Watcher,
    stop: threading.Event,
    times: FollowTimes = FollowTimes(),  # safe as a default: it is immutable
    *,
    monitor: SilenceMonitor | None = None,
    guard: Guard = lambda _part: nullcontext(),
) -> FollowResult:
    """Collect every log and report to the watcher, until the run has ended on all nodes or `stop` is set.

    Return what was seen of its end.

    The first rank that fails is reported immediately. If torchrun may restart it, the failure has no other effect. A rank that
    is silent for longer than `monitor` allows is also reported. If the monitor fails, `guard` reports that once.

    Raises FollowBroken if a time limit is reached, or if a node stays unreachable or sends invalid data. Raises StorageError if
    the disk here is full. After such an error, the run itself continues.
    """
    state = _FollowState(job, watcher, stop, monitor or SilenceMonitor({}, None), guard)
    readers = [_NodeFollower(fleet, job, node, state, times) for node in job.nodes]
    for reader in readers:
        reader.start()
    try:
        _attend(fleet, job, state, times)
    finally:
        state.leaving.set()
        for reader in readers:
            reader.join(2.0)
    order = {node.name: place for place, node in enumerate(job.nodes)}
    state.result.node_exits.sort(key=lambda node_end: order[node_end.node])
    state.result.rank_exits.sort(key=lambda rank_end: (rank_end.rank, rank_end.restart))
    with state.monitor() as listener:
        state.result.silences = listener.list_remembered()
    state.result.full_logs = sorted(log.name for reader in readers for log in reader.logs.values() if log.full)
    if state.faults:
        raise state.faults[0]
    if state.broken:
        raise FollowBroken(combine_errors(state.broken, of=len(job.nodes)), state.result)
    state.result.detached = len(state.result.node_exits) < len(job.nodes)
    return state.result


class _FollowState:
    """The state that the threads of all nodes share: the result so far, the broken connections and the monitor of silence."""

    def __init__(
        self, job: FollowedJob, watcher: Watcher, stop: threading.Event, monitor: SilenceMonitor, guard: Guard
    ) -> None:
        self.paths, self.tell, self.stop, self.log_limit = job.paths, make_thread_safe(watcher), stop, job.log_limit
        self._monitor, self._guard, self._has_monitor_failed = monitor, guard, False
        self.ranks = job.world_size if job.world_size and not job.scheduled else MAX_RANKS
        self.received, self.most_exits = 0, max(_MAX_RANK_EXITS, 2 * (job.world_size or 0))
        self.result = FollowResult(skew_s=dict(job.skew_s), max_restarts=job.max_restarts)
        self.broken: list[Outcome[None]] = []
        self.faults: list[BaseException] = []
        self.changed = threading.Condition()
        self.leaving = threading.Event()
        self._known_exits: set[tuple[str, int, float]] = set()
        self._failed: dict[int, float] = {}

    @contextmanager
    def monitor(self) -> Iterator[SilenceMonitor]:
        """Yield the monitor. An error in the block does not end the follower, and is reported only once."""
        with suppress(Exception) if self._has_monitor_failed else self._guard("watch for ranks that are silent"):
            try:
                yield self._monitor
            except Exception:
                self._has_monitor_failed = True
                raise

    def leave(self) -> bool:
        return self.stop.is_set() or self.leaving.is_set()

    def record_exit(self, end: NodeExit | RankExit) -> None:
        final = isinstance(end, NodeExit) or not self.result.may_begin_again(end)
        if final:
            with self.monitor() as monitor:
                monitor.note_ended(end.node, end.rank if isinstance(end, RankExit) else None)
        if final and isinstance(end, RankExit):
            self.tell(RankEvent(node=end.node, rank=end.rank, code=end.code))
        with self.changed:
            if isinstance(end, NodeExit):
                self.result.node_exits.append(end)
            elif (end.node, end.rank, end.at) not in self._known_exits:
                if len(self._known_exits) >= self.most_exits:
                    raise answers.make_untrusted_error(end.node, "its report on its ranks", "it lists too many ends of ranks")
                self._known_exits.add((end.node, end.rank, end.at))
                self.result.rank_exits.append(end)
            self.changed.notify_all()

    def find_settled_failure(self) -> RankExit | None:
        """Return the rank that failed first since the latest restart. Return None until the other ranks' reports have had time
        to arrive."""
        with self.changed:
            first = self.result.find_first_failure(self.result.restarts)
            if first is None:
                return None
            first_seen_s = self._failed.setdefault(first.restart, time.monotonic())
            reason = next((node_end.reason for node_end in self.result.node_exits if node_end.node == first.node), None)
            if first.code == _TERMINATED and reason in {"timed_out", "cancelled"}:
                return None
            patience = _TERMINATED_S if first.code == _TERMINATED and reason is None else _SETTLED_S
            return first if time.monotonic() - first_seen_s >= patience else None


class _NodeFollower(threading.Thread):
    """A thread that follows one node: it reads the agent's frames, writes the logs, and reconnects after a lost connection."""

    def __init__(self, fleet: Fleet, job: FollowedJob, node: Node, state: _FollowState, times: FollowTimes) -> None:
        super().__init__(name=f"follow-{node.name}", daemon=True)
        self._fleet, self._run_id, self._node, self._state = fleet, job.run_id, node, state
        self._give_up_s, self._silence_s = times.give_up_s, times.silence_s
        self._scheduled = job.scheduled
        self._hosts, self._ranks = job.hosts if job.scheduled else (), job.world_size or MAX_RANKS
        self._max_logs = count_possible_logs(self._ranks, job.hosts) if job.scheduled else MAX_LOGS
        self.logs: dict[LogOwner, LogFile] = {}
        self._named: dict[int, LogOwner] = {}
        self._heard = time.monotonic()

    def run(self) -> None:
        try:
            self._follow_to_end()
        except UnreachableError as error:
            self._state.broken.append(Outcome(node=self._node, error=error))
        except BaseException as fault:  # noqa: BLE001  # raised again in `follow`
            self._state.faults.append(fault)
        finally:
            with self._state.changed:
                self._state.changed.notify_all()

    def _follow_to_end(self) -> None:
        wait, is_reported = 0.05, False
        self._heard = lost_s = time.monotonic()
        while not self._state.leave():
            try:
                if self._follow_once():
                    return
                wait = 0.05
            except NodeUntrusted:
                raise  # it would send the same again
            except UnreachableError as error:
                if self._state.leave():
                    return
                self._fleet.drop(self._node)
                if self._heard >= lost_s:  # the node was heard since the last loss, so this is a new loss
                    lost_s = time.monotonic()
                if time.monotonic() - lost_s >= self._give_up_s:
                    raise UnreachableError(
                        f"{self._node.label}: lost, and not reached again for {self._give_up_s:g} s ({error.what})",
                        hint="its log so far is kept, and the run may continue: gpucourse logs -f, or gpucourse cancel RUN",
                    ) from error
                if not is_reported and (wait > 0.1 or time.monotonic() - self._heard > 2.0):
                    self._state.tell(Note(text=f"{self._node.label}: connection lost, trying again", level="warning"))
                    is_reported = True
                self._state.stop.wait(wait)
                wait = min(wait * 2, 2.0)

    def _follow_once(self) -> bool:
        """Read until this connection ends. Return True if the run has ended on this node."""
        self._take_up_logs()
        sizes = {owner: log.size for owner, log in self.logs.items()}
        words, stdin = make_question(self._run_id, self._node, sizes)
        link = self._fleet.link(self._node)
        with jobs.stream_verb(link, *words, stdin=stdin, silence_s=self._silence_s) as pieces:
            for kind, stream, offset, payload in answers.read_frames(self._node.label, pieces):
                self._heard = time.monotonic()
                self._state.received += len(payload)
                if self._take(kind, stream, offset, payload) or self._state.leave():
                    return True
        return False

    def _take(self, kind: bytes, stream: int, offset: int, payload: bytes) -> bool:
        """Handle one frame. Return True if it reports the end of the run."""
        name = self._node.name
        if kind == frames.LOG:
            self._append(self._find_owner(stream), offset, payload)
        elif kind == frames.NAMED:
            self._keep_name(stream, answers.parse(name, "the name of a log", payload, answers.LogName))
        elif kind == frames.RANK:
            rank_end = answers.parse(name, _RANK_REPORT, payload, answers.RankEnd)
            if rank_end.rank >= self._state.ranks or (rank_end.node not in {"", name} and not self._scheduled):
                raise self._distrust(_RANK_REPORT, f"there is no rank {rank_end.rank} on {rank_end.node or name}")
            if rank_end.restart > self._state.result.max_restarts:
                raise self._distrust(_RANK_REPORT, f"there can be no restart {rank_end.restart}")
            self._state.record_exit(jobs.rank_exit(name, rank_end))
        elif kind == frames.END:
            limits = {"max_bytes": answers.MAX_FRAME, "max_items": answers.MAX_END_ITEMS}
            end = answers.parse(name, "its report on the end of the run", payload, answers.NodeEnd, **limits)
            self._state.result.jobs, self._state.result.later_jobs = end.jobs, end.later
            self._state.record_exit(jobs.node_exit(name, end))
            return True
        elif kind != frames.BEAT:
            raise self._distrust("its report on the run", f"there is no kind of message {kind!r}")
        return False

    def _distrust(self, subject: str, reason: object) -> NodeUntrusted:
        return answers.make_untrusted_error(self._node.label, subject, reason)

    def _keep_name(self, stream: int, log_name: answers.LogName) -> None:
        if stream >= MAX_LOGS:
            raise self._distrust("the name of a log", f"there is no log {stream}")
        node, rank = log_name.node or self._node.name, log_name.rank
        if self._hosts is not None and node not in {*self._hosts, self._node.name}:
            raise self._distrust("the name of a log", f"{node} is not a node of this lab")
        if rank is not None and rank >= self._ranks:
            raise self._distrust("the name of a log", f"there is no rank {rank}: {self._ranks} were started")
        self._named[stream] = node, rank

    def _find_owner(self, stream: int) -> LogOwner:
        """Return the node and the rank that a stream belongs to. The rank of a launcher is None."""
        if stream not in self._named:
            raise self._distrust("a piece of a log", f"there is no log {stream}")
        return self._named[stream]

    def _take_up_logs(self) -> None:
        """Open the log files of this node that are already on this computer."""
        for owner in find_logs(self._node, self._state.paths, scheduled=self._scheduled):
            self._log(owner)

    def _append(self, owner: LogOwner, offset: int, data: bytes) -> None:
        node, rank = owner
        if owner not in self.logs and len(self.logs) >= self._max_logs:
            raise self._distrust("a piece of a log", f"this run can have at most {self._max_logs} logs")
        log = self._log(owner)
        was_full = log.full
        stored = log.append(offset, data)
        if data and rank is not None:
            with self._state.monitor() as monitor:
                monitor.note_output(node, rank, data)
        if stored:
            self._state.tell(LogBytes(node=node, rank=rank, data=stored, scheduled=self._scheduled))
        if log.full and not was_full:
            self._state.tell(Note(text=f"{log.full}; the run continues (log_limit in gpucourse.yaml)", level="warning"))

    def _log(self, owner: LogOwner) -> LogFile:
        if owner not in self.logs:
            paths = self._state.paths
            self.logs[owner] = LogFile(self._node.name, paths.rank_log(*owner), paths.rank_times(*owner), self._state.log_limit)
        return self.logs[owner]


def _attend(fleet: Fleet, job: FollowedJob, state: _FollowState, times: FollowTimes) -> None:
    """Wait for the end of the run. Report the first rank that fails and the ranks that become silent.

    After the first failure, cancel the nodes that have not ended within the grace period, except under Slurm. Stop waiting for
    nodes that do not report the end in time.
    """
    start_s, patience = time.monotonic(), None
    may_cancel = not job.scheduled
    reported_restarts: set[int] = set()
    while True:
        with state.monitor() as monitor:
            if silent := monitor.list_newly_silent():
                monitor.remember(silent := look(fleet, job.run_id, silent))
                for sentence in sentences(silent):
                    state.tell(Note(text=sentence, level="warning"))
        with state.changed:
            if state.stop.is_set() or state.broken or state.faults or len(state.result.node_exits) == len(job.nodes):
                return
            if state.result.has_failed and may_cancel and patience is None:
                patience = time.monotonic() + times.grace_s
            is_due = patience is not None and time.monotonic() >= patience
            if not is_due:
                state.changed.wait(0.1)
            ended_nodes = {node_exit.node for node_exit in state.result.node_exits}
            remaining = [node for node in job.nodes if node.name not in ended_nodes]
            if times.is_over(time.monotonic() - start_s, state.received):
                state.broken += [Outcome(node=node, error=_make_limit_error(node, start_s)) for node in remaining]
                return
        if (first := state.find_settled_failure()) is not None and first.restart not in reported_restarts:
            reported_restarts.add(first.restart)
            state.tell(Note(text=state.result.describe_failure(first), level="warning"))
        if is_due:
            with state.monitor() as monitor:
                monitor.remember(look(fleet, job.run_id, monitor.quiet(times.grace_s)))
            patience, may_cancel = None, False
            fleet.do_on_each(lambda link: jobs.cancel(link, [job.run_id], 3.0), remaining)


def _make_limit_error(node: Node, start_s: float) -> UnreachableError:
    return UnreachableError(
        f"{node.label}: the run has not ended there after {time.monotonic() - start_s:.0f} s",
        hint="its log so far is kept: gpucourse status, then gpucourse cancel RUN",
    )
