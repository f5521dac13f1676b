"""The record of a run. `workspace` stores it as JSON; readers ignore unknown keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from shlex import quote
from typing import Annotated, Literal

from msgspec import Meta

from gpucourse.model.diagnosis import Diagnosis, Silence
from gpucourse.model.launchers import find_traits
from gpucourse.model.node import Mode
from gpucourse.model.plan import find_fork_count
from gpucourse.model.slurm import SlurmRun
from gpucourse.units import parse_moment

RunState = Literal[
    "planned", "starting", "running", "collecting", "succeeded", "failed", "cancelled", "timed_out", "lost", "broken"
]
ENDED: frozenset[str] = frozenset({"succeeded", "failed", "cancelled", "timed_out", "lost", "broken"})
"""The states of a run that has ended. Every drill ends as `broken`: it had an injected fault, so it is not evidence."""

# The most important reason comes first: a deadline or a lost node explains why other nodes were cancelled.
_WEIGHT: tuple[tuple[str, RunState], ...] = (
    ("timed_out", "timed_out"),
    ("lost", "lost"),
    ("exited", "failed"),
    ("cancelled", "cancelled"),
)

MAX_LISTED = 50
"""The maximum number of outputs that a run's record lists. The run's seal lists all of them."""

MAX_RESTARTS = 100
"""The maximum number of times that torchrun may restart all ranks of a run."""

MAX_RANKS = 65_536
"""The maximum number of ranks in a run. A record with more ranks, or with more nodes than MAX_LISTED_NODES, is damaged."""

MAX_LISTED_NODES = 1024

Restarts = Annotated[int, Meta(ge=0, le=MAX_RESTARTS)]
RankCount = Annotated[int, Meta(ge=0, le=MAX_RANKS)]


@dataclass(frozen=True, kw_only=True)
class NodeExit:
    """The end of one node's part of a run.

    `code`: as in the shell, so 128 + n for signal n.
    `reason`: exited, cancelled, timed_out, or lost (the node or its supervisor vanished).
    """

    node: str
    code: int
    reason: Literal["exited", "cancelled", "timed_out", "lost"] = "exited"
    seconds: float | None = None
    killed: int = 0


@dataclass(frozen=True, kw_only=True)
class RankExit:
    """The end of one rank.

    `at`: seconds since the epoch, according to the node's clock.
    `restart`: how often torchrun had started all ranks again; 0 in a rank's first life.
    `group`: the size of the largest process group that torch made in the rank. It is 0 if torch was imported but made none, and
    None if torch reported nothing.
    """

    node: str
    rank: Annotated[int, Meta(ge=0, lt=MAX_RANKS)]
    code: int
    at: float
    restart: Restarts = 0
    group: RankCount | None = None


@dataclass(frozen=True, kw_only=True)
class OutputFile:
    """A collected file. `path` is relative to the run's folder."""

    node: str
    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class RefusedFile:
    """A file that a node offered but that was not collected, with the reason as a sentence."""

    node: str
    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class GivenPrediction:
    """The learner's prediction before a run. `id` is its id in the manifest; `answer` is the text as typed."""

    id: str
    answer: str


@dataclass(kw_only=True)
class RunRecord:
    """`run.json`: the facts about one run that have no separate file. Times are ISO 8601 in UTC.

    `nodes`: under Slurm, the node that accepts the jobs. The rows of the jobs say where they ran.
    `silence_s`: a rank that prints nothing for this many seconds is reported.
    `silences`: the ranks that were still silent at the end.
    `clock_skew_s`: how far each node's clock was ahead of this computer's.
    `drill`: whether a fault was injected on purpose.
    `repair`: whether the learner's repaired copy of a drill ran.
    `own_script`: a learner's own script that ran in place of the exercise. Its results say nothing about the exercise.
    `own_module`: the name of that script as a module, if it was started as a module.
    `place`: the folder of its runs below `runs/`, such as `scripts/train.py`. It is empty for the exercise's folder.
    `profiled`: whether it ran under a profiler, which slows it down. Its times are then not evidence.
    `prediction`: the prediction made before it began, if any.
    `edited`: the exercise's files that differed from the course's.
    `expected_red`: the check that the learner expected to fail after that edit.
    `as_predicted`: whether that check was the only one that failed.
    `spread`: on how many nodes the ranks are if the launcher runs on the first node only, otherwise 0.
    `world_size`: how many processes the launcher starts. `rank_count` also counts the ranks that these start.
    `restarts`: how often torchrun started all ranks again, at most `max_restarts`. Only failures after the last restart make a
    run fail and count for `first_failure`.
    `environment`: the variables that were typed.
    `handed_on`: the names of further variables, whose values are not stored.
    `torchrun`: torchrun's own options, as typed.
    `checks`: the checks of a learner's own script, as in a manifest.
    `outputs`: the first MAX_LISTED collected files.
    `output_files` and `output_bytes`: the number and size of all collected files. Old records lack both, and list all files.
    """

    version: int = 1
    id: str
    exercise: str
    module: str
    stack: str
    mode: Mode
    launcher: str
    own_script: str | None = None
    own_module: str | None = None
    place: str | None = None
    profiled: bool = False
    state: RunState
    created: str
    started: str | None = None
    ended: str | None = None
    prediction: GivenPrediction | None = None
    expected_red: str | None = None
    as_predicted: bool = False
    edited: list[str] = field(default_factory=list)
    parameters: dict[str, object] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    handed_on: list[str] = field(default_factory=list)
    torchrun: str = ""
    checks: list[dict[str, object]] = field(default_factory=list)
    nodes: Annotated[list[str], Meta(max_length=MAX_LISTED_NODES)] = field(default_factory=list)
    spread: Annotated[int, Meta(ge=0, le=MAX_LISTED_NODES)] = 0
    world_size: RankCount = 0
    max_restarts: Restarts = 0
    restarts: Restarts = 0
    node_exits: list[NodeExit] = field(default_factory=list)
    rank_exits: list[RankExit] = field(default_factory=list)
    first_failure: RankExit | None = None
    silence_s: float = 120.0
    silences: list[Silence] = field(default_factory=list)
    clock_skew_s: dict[str, float] = field(default_factory=dict)
    diagnoses: list[Diagnosis] = field(default_factory=list)
    drill: bool = False
    repair: bool = False
    outputs: list[OutputFile] = field(default_factory=list)
    output_files: int = 0
    output_bytes: int = 0
    refused: list[RefusedFile] = field(default_factory=list)
    full_logs: list[str] = field(default_factory=list)
    collected: bool = False
    verdict: str | None = None
    error: str | None = None
    phases_s: dict[str, float] = field(default_factory=dict)
    gpucourse: str = ""
    slurm: SlurmRun | None = None

    @property
    def subject(self) -> str:
        """Return the name of what ran: the exercise, or the learner's own script."""
        return PurePath(self.own_script).name if self.own_script else self.exercise

    @property
    def run_words(self) -> list[str]:
        """Return the words to type after `gpucourse run` to start the same exercise or script."""
        if self.own_module:
            return ["--module", self.own_module]
        return ["--script", self.own_script] if self.own_script else [self.exercise]

    @property
    def folder(self) -> str:
        """Return the path, below `runs/`, of the folder with all runs of the same exercise or of the same script."""
        return self.place or self.exercise

    @property
    def is_evidence(self) -> bool:
        """Return whether the run can count for its exercise: the exercise's script ran and succeeded."""
        return self.is_judged and not self.expected_red

    @property
    def is_judged(self) -> bool:
        """Return whether the exercise's checks apply: its script ran and succeeded, perhaps with an edit to make a check
        fail."""
        return self.state == "succeeded" and not self.own_script and not self.profiled

    @property
    def brings_checks(self) -> bool:
        """Return whether the run executed a learner's own script that has checks."""
        return self.state == "succeeded" and bool(self.own_script and self.checks) and not self.profiled

    @property
    def shown_state(self) -> str:
        """Return the state of the run in words. The state `broken`, with which every drill ends, is shown as `drill`."""
        state = "waiting" if self.is_waiting else self.state
        return "drill" if state == "broken" else state.replace("_", " ")

    @property
    def is_waiting(self) -> bool:
        """Return whether Slurm had not started any job of the run when it was last asked."""
        jobs = self.slurm.jobs if self.slurm and not self.has_ended else []
        return bool(jobs) and all(job.state == "PENDING" for job in jobs)

    @property
    def shown_verdict(self) -> str | None:
        """Return the verdict of the run's checks, or None for a learner's own script without checks."""
        return None if self.own_script and not self.checks else self.verdict

    @property
    def seconds(self) -> float | None:
        """Return how long the ranks ran: the longest time on a node, otherwise the time from the run's start to its end. Return
        None if it is not known."""
        if times := [end.seconds for end in self.node_exits if end.seconds is not None]:
            return max(times)
        if "run" in self.phases_s:
            return self.phases_s["run"]
        return (parse_moment(self.ended) - parse_moment(self.started)).total_seconds() if self.started and self.ended else None

    @property
    def output_totals(self) -> tuple[int, int]:
        """Return the number of collected outputs and their total size in bytes."""
        if self.output_files:
            return self.output_files, self.output_bytes
        return len(self.outputs), sum(output.bytes for output in self.outputs)

    @property
    def restarts_in_words(self) -> str:
        """Return how often torchrun started all ranks again, such as `1 restart`, or an empty string if it did not."""
        return f"{self.restarts} restart{'s' if self.restarts > 1 else ''}" if self.restarts else ""

    @property
    def starts_ranks(self) -> bool:
        """Return whether the launcher's processes are the ranks of one world."""
        return find_traits(self.launcher).starts_ranks

    @property
    def group_sizes(self) -> list[int]:
        """Return the size of the process group of each rank in its last life, by rank. Ranks without a report from torch are
        left out."""
        last = {end.rank: end.group for end in sorted(self.rank_exits, key=lambda end: end.restart)}
        return [size for _, size in sorted(last.items()) if size is not None]

    @property
    def node_count(self) -> int:
        """Return on how many nodes the ranks run."""
        return self.spread or len(self.nodes)

    @property
    def rank_count(self) -> int:
        """Return how many ranks took part: the planned number, or more if each planned rank started further ranks."""
        planned_count = self.world_size * (1 if self.own_script else find_fork_count(self.parameters))
        sizes = self.group_sizes if self.starts_ranks and not self.split_world else []
        return max(planned_count, *sizes) if sizes else planned_count

    @property
    def split_world(self) -> str:
        """Return how the ranks' process groups differ from the plan, in a sentence; an empty string if they do not, or if that
        is not known."""
        sizes, planned_size = self.group_sizes, self.world_size
        if not self.starts_ranks or self.state != "succeeded" or planned_size < 2 or not sizes:
            return ""
        if (
            len(set(sizes)) == 1 and sizes[0] and sizes[0] % planned_size == 0
        ):  # each rank may have started the same number of processes
            return ""
        if not any(sizes):
            return f"torch made no process group: {len(sizes)} ranks worked alone, each in a world of one"
        groups = ", ".join(_count_groups(size, sizes.count(size)) for size in sorted(set(sizes)))
        return f"{planned_size} ranks were planned as one process group, but they made {groups}"

    @property
    def warnings(self) -> list[str]:
        """Return a sentence for each problem of a run that succeeded."""
        return [self.split_world] if self.split_world else []

    @property
    def culprit(self) -> int | None:
        """Return the rank to look at first: the rank that the coach blames, otherwise the first rank that failed. Return None
        if several ranks are silent, because nothing shows which of them keeps the others waiting."""
        blamed = self.diagnoses[0].ranks if self.diagnoses else []
        if len(blamed) > 1 and self.diagnoses[0].symptom == "silent-rank":
            return None
        return blamed[0] if blamed else self.first_failure.rank if self.first_failure else None

    def is_of_script(self, name: str) -> bool:
        """Return whether this is a run of the learner's script `name`: a file name such as `train.py`, or the end of its
        path."""
        parts = PurePath(name).parts
        return self.own_script is not None and PurePath(self.own_script).parts[-len(parts) :] == parts

    @property
    def advice(self) -> str:
        """Return the command to type next if the run has not ended or has failed, if it is an unsolved drill, or if it ran a
        learner's own script. Otherwise return an empty string."""
        if not self.has_ended:
            return f"gpucourse logs {self.id} -f"
        if self.drill:
            command = f"break {self.exercise} --repaired" if self.repair else f"check {self.exercise} --diagnosis WORD"
            return "" if self.verdict == "passed" else f"gpucourse {command}"
        if self.error and not (self.started or self.node_exits):  # it ended while it was starting, so it has no logs
            return self.diagnoses[0].next if self.diagnoses else ""
        if self.state in {"succeeded", "cancelled"}:
            return f"gpucourse logs {self.id}" if self.own_script else ""
        rank = f" --rank {self.culprit}" if self.culprit is not None else ""
        return self.diagnoses[0].next if self.diagnoses else f"gpucourse logs {self.id}{rank}"

    def show_command(self, flags: str = "") -> str:
        """Return the command that shows the run again, with these flags. `--` protects names that begin with a dash."""
        name, run = quote(self.subject), f"--run {self.id}{flags}"
        return f"gpucourse show {run} -- {name}" if name.startswith("-") else f"gpucourse show {name} {run}"

    @property
    def has_ended(self) -> bool:
        """Return whether the run has ended, with success or without."""
        return self.state in ENDED


def name_subjects(records: Iterable[RunRecord]) -> dict[str, str]:
    """Return the subject of each run, by the run's id. Scripts with the same name are told apart by their folders:
    `a/train.py`, `b/train.py`."""
    paths: dict[str, set[PurePath]] = {}
    all_records = list(records)
    for record in all_records:
        if record.own_script:
            paths.setdefault(record.subject, set()).add(PurePath(record.own_script))
    lengths = {name: _count_telling_parts(scripts) for name, scripts in paths.items()}
    return {
        record.id: str(PurePath(*PurePath(record.own_script).parts[-lengths[record.subject] :]))
        if record.own_script
        else record.subject
        for record in all_records
    }


def _count_telling_parts(paths: Collection[PurePath]) -> int:
    """Return how many of the last parts of these paths are needed to tell them apart."""
    longest = max(len(path.parts) for path in paths)
    return next((n for n in range(1, longest) if len({path.parts[-n:] for path in paths}) == len(paths)), longest)


def _count_groups(size: int, ranks: int) -> str:
    """Return how many groups of `size` ranks these `ranks` ranks made, such as `2 groups of 1 rank`."""
    if size == 0:
        return f"none on {ranks} rank{'s' if ranks > 1 else ''}"
    groups = max(1, ranks // size)
    return f"{groups} group{'s' if groups > 1 else ''} of {size} rank{'s' if size > 1 else ''}"


def find_end_state(exits: Sequence[NodeExit]) -> RunState:
    """Return `succeeded` if every node exited with 0, otherwise the most important reason. Without exits, return `lost`."""
    if not exits:
        return "lost"
    reasons = {end.reason for end in exits if end.code != 0 or end.reason != "exited"}
    return next((state for reason, state in _WEIGHT if reason in reasons), "succeeded")
