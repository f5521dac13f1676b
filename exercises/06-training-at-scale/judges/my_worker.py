"""Judge my_worker.py of 6.5: ranks in threads train through lives in which they die, and every call is recorded."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from elastic import DamagedCheckpointError, PeerLostError

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "own-newest": Way(
        "rank {rank} continues with step {step}, and rank {other} with step {other_step}, so their weights differ. "
        "All ranks have to continue from the same checkpoint",
        ("common = set.intersection(*map(set, worker.gather(worker.list_steps())))", "common = set(worker.list_steps())"),
    ),
    "mixed-weights": Way(
        "all ranks train step {step}, but rank {rank} has weights {weights}, and rank {other} has weights {other_weights}",
        ("        if all(worker.gather(loaded)):\n            return step\n",
         "        worker.gather(loaded)\n        return step\n"),
    ),
    "not-reset": Way(
        "all ranks begin with step 1, but rank {rank} has weights {weights}: it needs those of a new run",
        ("    worker.reset()\n", ""),
    ),
    "wrong-weights": Way(
        "all ranks train step {step} with weights {weights}",
        ("            return step\n", "            return step + 1\n"),
    ),
    "too-old": Way(
        "this life begins with step {step}, but every rank can load the checkpoint of step {best}: {lost} steps are repeated "
        "unnecessarily",
        ("sorted(common, reverse=True)", "sorted(common)"),
    ),
    "not-finished": Way(
        "`train` returned on all ranks after step {step} of {steps}",
        ("worker.steps + 1)", "worker.steps)"),
    ),
    "too-far": Way(
        "step {step} was trained, but the last one is {steps}",
        ("range(steps_done + 1, worker.steps + 1)", "range(steps_done + 1, steps_done + worker.steps + 1)"),
    ),
    "computed-twice": Way(
        "in step {step} sequence {sequence} of the batch was computed by {count} of {size} ranks: each sequence counts once",
        ("range(worker.rank, worker.batch, worker.size)", "range(worker.batch)"),
    ),
    "sequences-left-out": Way(
        "in step {step} no rank computed sequence {sequence} of the batch ({size} ranks in this life): each one counts once",
        ("range(worker.rank, worker.batch, worker.size)", "range(worker.rank, worker.batch, 4)"),
    ),
    "unequal-shares": Way(
        "in step {step} the ranks computed {counts} sequences: the mean of their gradients then differs from the batch's",
        ("    share = range(worker.rank, worker.batch, worker.size)\n",
         "    first = range(worker.batch - worker.size + 1)\n"
         "    share = first if worker.rank == 0 else [worker.batch - worker.rank]\n"),
    ),
    "not-saved": Way(
        "step {step} was done, but no checkpoint of it was saved: worker.every is {every}",
        ("step % worker.every == 0", "step % (2 * worker.every) == 0"),
    ),
    "saved-too-often": Way(
        "a checkpoint was saved after step {step}, which is not a multiple of worker.every ({every}) and not the last step",
        ("step % worker.every == 0", "step"),
    ),
    "saved-wrongly": Way(
        "rank {rank} saved a checkpoint of step {step} with weights {weights}: a later life would repeat or skip a step",
        ("        worker.train_step(step, share)\n        if step % worker.every == 0:\n            worker.save(step)\n",
         "        if step % worker.every == 0:\n            worker.save(step)\n        worker.train_step(step, share)\n"),
    ),
    "hangs": Way(
        "the ranks wait for each other for ever: {places}",
        ("step % worker.every == 0", "step % worker.every == 0 and worker.rank == 0"),
    ),
    "damage-ends-it": Way(
        "rank {rank} cannot read the checkpoint of step {step}, and ends with DamagedCheckpointError. Every later life does "
        "so, too, although an older checkpoint exists",
        ("except DamagedCheckpointError:", "except FileNotFoundError:"),
    ),
    "goes-on-alone": Way(
        "a rank died, and rank {rank} makes collective calls again after PeerLostError: this life is over, so let `train` end",
        ("        worker.train_step(step, share)\n",
         "        try:\n            worker.train_step(step, share)\n        except Exception:\n            continue\n"),
    ),
    "not-joined": Way(
        "rank {rank} calls {call} before join: the ranks of the new life have not met, and size may have changed",
        ("    worker.join()\n    steps_done", "    steps_done"),
    ),
}  # fmt: skip

_MAX_CALLS = 3000
_WAIT_S = 12.0  # a rank that computes without a call


class _Death(BaseException):
    """Ends a rank, like a kill: `except Exception` does not catch it."""


@dataclass(frozen=True)
class Life:
    """One life of a training run.

    `dies`: the rank that dies in the life, the step, and whether it dies before it has written its slices of that step's
    checkpoint.
    `hidden` and `damaged`: for each rank, the steps whose checkpoint it does not see, and those that it cannot read.
    """

    size: int
    dies: tuple[int, int] | None = None
    in_save: bool = False
    hidden: Mapping[int, Sequence[int]] = field(default_factory=dict)
    damaged: Mapping[int, Sequence[int]] = field(default_factory=dict)


STEPS, EVERY, BATCH = 22, 5, 24
RUNS: dict[str, list[Life]] = {
    "an undisturbed run of 3 ranks": [Life(3)],
    "a single rank": [Life(1)],
    "a crash of rank 1 after step 13": [Life(3, (1, 13)), Life(3)],
    "a rank that does not see the newest checkpoint": [Life(3, (0, 17)), Life(3, hidden={1: [15]})],
    "ranks whose newest checkpoints differ": [Life(2, (1, 21)), Life(2, hidden={0: [15], 1: [20]})],
    "a newest checkpoint that one rank cannot read": [Life(3, (2, 17)), Life(3, damaged={2: [15]})],
    "the first rank cannot read the newest two": [Life(3, (0, 17)), Life(3, damaged={0: [15, 10]})],
    "a crash in the middle of a save": [Life(4, (3, 15), in_save=True), Life(4)],
    "a rank that cannot read any checkpoint": [Life(3, (2, 12)), Life(3, damaged={1: [10, 5]})],
    "2 of 4 ranks in the second life, and 3 in the third": [Life(4, (3, 12)), Life(2, (0, 18)), Life(3)],
    "another rank is lost as soon as training continues": [Life(3, (1, 8)), Life(2, (1, 6)), Life(6, damaged={4: [5]})],
    "a crash after the last save": [Life(2, (1, 20)), Life(2, (0, 22)), Life(4)],
}  # fmt: skip


def judge(part: Part) -> None:
    """Let the worker train through each run, and judge every step by the weights and sequences that it used."""
    train = part.function("train")
    lives = steps = 0
    for name, run in RUNS.items():
        cluster = _Cluster(part, name)
        for life in run:
            cluster.live(train, life)
        if cluster.steps_done != STEPS:
            raise part.wrong("not-finished", name, step=cluster.steps_done, steps=STEPS)
        lives, steps = lives + len(run), steps + cluster.trained
    part.note(f"{len(RUNS)} training runs with {lives} lives: in {steps} steps every sequence counted once")


class _Cluster:
    """Checkpoints that outlive the ranks, and the calls of the ranks of one life."""

    def __init__(self, part: Part, name: str) -> None:
        self.part, self.name = part, name
        self.saved: dict[int, set[int]] = {}
        """The ranks whose slices are missing, by the step of the checkpoint."""
        self.steps_done = self.trained = 0
        self.room = threading.Condition()

    def live(self, train: Callable[..., Any], life: Life) -> None:
        """Let all ranks of a life train in threads until all have ended. Raise the first fault as a verdict."""
        self.life, self.is_over, self.fault = life, False, None
        self.turn, self.count, self.first_step = 0, 0, 0
        self.new_saves: set[int] = set()
        self.calls: dict[int, tuple[str, Any, str]] = {}
        self.values: list[Any] = []
        self.active = set(range(life.size))
        self.best = max((step for step in self.saved if all(self.can_load(rank, step) for rank in self.active)), default=0)
        ranks = [_Rank(self, number) for number in range(life.size)]
        threads = [threading.Thread(target=self._run, args=(train, rank), daemon=True) for rank in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_WAIT_S)
        if self.fault is not None:
            raise self.fault
        if any(thread.is_alive() for thread in threads):
            raise Verdict("failed", "endless", "a rank computes without end, and makes no call of the worker", self.name)

    def sees(self, rank: int, step: int) -> bool:
        """Return whether a rank sees the folder of this checkpoint."""
        return step in self.saved and step not in self.life.hidden.get(rank, ())

    def can_load(self, rank: int, step: int) -> bool:
        """Return whether a rank can read its slices of this checkpoint."""
        return self.sees(rank, step) and step not in self.life.damaged.get(rank, ()) and not self.saved[step]

    def _run(self, train: Callable[..., Any], rank: _Rank) -> None:
        try:
            train(rank)
        except _Death:
            pass
        except DamagedCheckpointError as error:
            self._note(self.part.wrong("damage-ends-it", self.name, rank=rank.number, step=error.args[0]))
        except BaseException as error:  # noqa: BLE001  # the learner's code may raise anything
            if not (self.is_over and isinstance(error, (PeerLostError, SystemExit))):
                self._note(self.part.make_verdict(error, self.name))
        finally:
            with self.room:
                self.active.discard(rank.number)
                self._find_hang()

    def _note(self, verdict: Verdict) -> None:
        """Keep the first fault, and end all ranks."""
        with self.room:
            self.fault, self.is_over = self.fault or verdict, True
            self.room.notify_all()

    def complain(self, way: str, **values: object) -> NoReturn:
        """End all ranks with a fault."""
        self._note(self.part.wrong(way, self.name, **values))
        raise _Death

    def _find_hang(self) -> None:
        """Note a fault if every active rank waits in a call, and they wait in different calls or for a rank that returned."""
        if self.is_over or not self.active or set(self.calls) != self.active:
            return
        if len({call for call, _, _ in self.calls.values()}) == 1 and len(self.calls) == self.life.size:
            return
        places = [f"rank {rank} in {call}{line}" for rank, (call, _, line) in sorted(self.calls.items())]
        places += [f"rank {rank} has returned" for rank in range(self.life.size) if rank not in self.active]
        self._note(self.part.wrong("hangs", self.name, places=", ".join(places)))

    def meet(self, rank: _Rank, call: str, value: Any, check: Callable[[list[Any]], None] | None = None) -> list[Any]:
        """Return the values of all ranks when each of them has made this call. `check` sees them first, once."""
        with self.room:
            if self.is_over:
                self._refuse(rank)
            turn, self.count = self.turn, self.count + 1
            if self.count > _MAX_CALLS:
                self._note(Verdict("failed", "endless", f"after {_MAX_CALLS:,} calls it has not ended", self.name))
            self.calls[rank.number] = call, value, _find_line(self.part.file)
            self._find_hang()
            if len(self.calls) == self.life.size and not self.is_over:
                values = [self.calls[number][1] for number in range(self.life.size)]
                if check:
                    check(values)
                self.calls, self.turn, self.values = {}, turn + 1, values
                self.room.notify_all()
            while self.turn == turn and not self.is_over:
                self.room.wait()
            if self.turn == turn:
                self._refuse(rank)
            return list(self.values)

    def _refuse(self, rank: _Rank) -> NoReturn:
        rank.refused += 1
        if self.fault is None and rank.refused > 1:
            self.complain("goes-on-alone", rank=rank.number)
        if self.fault is not None:
            raise _Death
        raise PeerLostError("another rank has died")

    def die(self, rank: _Rank) -> NoReturn:
        """End a rank. The others notice at their next call."""
        with self.room:
            self.is_over = rank.is_dead = True
            self.active.discard(rank.number)
            self.room.notify_all()
        raise _Death

    def check_step(self, calls: list[Any]) -> None:
        """Complain unless all ranks train the next step with the same weights, on one whole batch."""
        step, weights, _ = calls[0]
        for rank, (other_step, other_weights, _) in enumerate(calls):
            if other_step != step:
                self.complain("own-newest", rank=0, step=step, other=rank, other_step=other_step)
            if step == 1 and other_weights:
                self.complain("not-reset", rank=rank, weights=_describe(other_weights))
            if other_weights != weights:
                words = {"weights": _describe(weights), "other_weights": _describe(other_weights)}
                self.complain("mixed-weights", step=step, rank=0, other=rank, **words)
        if step > STEPS:
            self.complain("too-far", step=step, steps=STEPS)
        if step < 1 or weights != tuple(range(1, step)):
            self.complain("wrong-weights", step=step, weights=_describe(weights))
        if not self.first_step and step <= self.best:
            self.complain("too-old", step=step, best=self.best, lost=self.best - step + 1)
        if self.first_step and step - 1 >= self.first_step and (step - 1) % EVERY == 0 and step - 1 not in self.new_saves:
            self.complain("not-saved", step=step - 1, every=EVERY)
        self._check_sequences(step, [list(sequences) for _, _, sequences in calls])
        if not self.first_step:
            self.first_step = step
        self.steps_done, self.trained = step, self.trained + 1

    def _check_sequences(self, step: int, shares: list[list[int]]) -> None:
        every_sequence = [sequence for share in shares for sequence in share]
        size = len(shares)
        for sequence in range(BATCH):
            count = every_sequence.count(sequence)
            if not count:
                self.complain("sequences-left-out", step=step, sequence=sequence, size=size)
            if count > 1:
                self.complain("computed-twice", step=step, sequence=sequence, count=count, size=size)
        if len({len(share) for share in shares}) > 1:
            self.complain("unequal-shares", step=step, counts=", ".join(str(len(share)) for share in shares))

    def check_save(self, calls: list[Any]) -> None:
        """Complain unless all ranks save the step that their weights have. The checkpoint has no slices yet."""
        step, weights = calls[0]
        if any(call != calls[0] for call in calls) or weights != tuple(range(1, step + 1)):
            rank = next((rank for rank, call in enumerate(calls) if call != calls[0]), 0)
            self.complain("saved-wrongly", rank=rank, step=calls[rank][0], weights=_describe(calls[rank][1]))
        if step % EVERY and step != STEPS:
            self.complain("saved-too-often", step=step, every=EVERY)
        self.saved[step] = set(range(self.life.size))
        self.new_saves.add(step)


def _describe(weights: tuple[int, ...]) -> str:
    """Return in words which steps have made these weights."""
    if weights and weights[-1] < 0:
        return "of a load that failed"
    if weights == tuple(range(1, len(weights) + 1)):
        return f"of step {len(weights)}" if weights else "of no step"
    return f"that come from the steps {', '.join(map(str, weights))}"


def _find_line(file: Path) -> str:
    """Return the line of the learner's file that is now running, in brackets."""
    frame = sys._getframe()  # noqa: SLF001
    while frame is not None:
        if Path(frame.f_code.co_filename) == file:
            return f" ({file.name}:{frame.f_lineno})"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


class _Rank:
    """The worker of one rank in one life, as elastic.py describes it. `weights` are the steps that have made them."""

    steps, every, batch = STEPS, EVERY, BATCH

    def __init__(self, cluster: _Cluster, number: int) -> None:
        self.number, self._cluster = number, cluster
        self._weights: tuple[int, ...] = ()
        self._has_joined = self.is_dead = False
        self.refused = 0

    def _check(self, call: str) -> None:
        if self.is_dead:
            raise _Death
        if not self._has_joined:
            self._cluster.complain("not-joined", rank=self.number, call=call)

    @property
    def rank(self) -> int:
        self._check("rank")
        return self.number

    @property
    def size(self) -> int:
        self._check("size")
        return self._cluster.life.size

    def join(self) -> None:
        self._has_joined = True
        self._cluster.meet(self, "join", None)

    def gather(self, value: Any) -> list[Any]:
        self._check("gather")
        return copy.deepcopy(self._cluster.meet(self, "gather", copy.deepcopy(value)))

    def list_steps(self) -> list[int]:
        self._check("list_steps")
        with self._cluster.room:
            self._cluster.count += 1
            steps = [step for step in self._cluster.saved if self._cluster.sees(self.number, step)]
        return sorted(steps, key=lambda step: (step * (7 + self.number)) % 11)

    def load(self, step: int) -> None:
        self._check("load")
        if not self._cluster.can_load(self.number, step):
            self._weights = (*self._weights, -1)
            raise DamagedCheckpointError(step)
        self._weights = tuple(range(1, step + 1))

    def reset(self) -> None:
        self._check("reset")
        self._weights = ()

    def train_step(self, step: int, sequences: Sequence[int]) -> float:
        self._check("train_step")
        cluster, dies = self._cluster, self._cluster.life.dies
        cluster.meet(self, "train_step", (step, self._weights, tuple(sequences)), cluster.check_step)
        self._weights = (*self._weights, step)
        if dies == (self.number, step) and not cluster.life.in_save:
            cluster.die(self)
        return 5.0 / step

    def save(self, step: int) -> None:
        self._check("save")
        cluster, dies = self._cluster, self._cluster.life.dies
        cluster.meet(self, "save", (step, self._weights), cluster.check_save)
        if dies == (self.number, step) and cluster.life.in_save:
            cluster.die(self)
        with cluster.room:
            cluster.saved[step].discard(self.number)
        cluster.meet(self, "save", None)
