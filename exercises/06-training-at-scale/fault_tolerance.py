"""A training run that loses workers, restarts from the newest checkpoint that all ranks can read, and ends as if undisturbed.

You will learn    what torchrun does when a rank dies; what a checkpoint has to contain; how ranks agree on one
You will produce  the losses of every life, step by step, and those of a run that never crashed; what the crash cost
Run it            torchrun --nproc-per-node=2 --max-restarts=3 fault_tolerance.py --steps 20 --crash-at 13 --save-every 5 \\
                           --step-s 0.05
Your part         `train` in my_worker.py: once it is written, it does the training in every life
Reading           modules/06-training-at-scale/lesson-9-crashes.md
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import checkpoints
import ranks
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from bench import say
from elastic import DamagedCheckpointError, PeerLostError
from sharded_training import be_repeatable
from torch import nn
from torch.distributed.checkpoint import CheckpointException, DefaultSavePlanner
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from transformer import Transformer, counting_text

MAX_CALL_S = 45.0
"""The time limit of one call, if ranks wait for each other in different calls; with gloo they would wait for minutes."""
SEED, VOCABULARY, LENGTH, BATCH, SEQUENCES = 0, 64, 32, 48, 1024
CRASH_CODE = 9
CALLS = ("join", "gather", "train_step", "save")
YOURS, OPEN, FAILED = "yours", "the course's", "the course's, yours failed"

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a training run that loses a worker and continues")
parser.add_argument("--steps", type=int, default=200, help="number of training steps")
parser.add_argument(
    "--crash-at", type=int, default=130, help="a rank ends itself after this step; in each later life, one step later"
)
parser.add_argument(
    "--crash-rank", type=int, default=1, help="the rank that ends itself; the last rank if there are fewer ranks"
)
parser.add_argument("--crashes", type=int, default=2, help="number of lives in which a rank ends itself")
parser.add_argument("--save-every", type=int, default=20, help="number of steps from one checkpoint to the next")
parser.add_argument("--step-s", type=float, default=0.2, help="minimum time of a step; 0 sets no minimum")
parser.add_argument("--width", type=int, default=256, help="width of the transformer; a multiple of 4")
parser.add_argument("--layers", type=int, default=4, help="layers of the transformer")
parser.add_argument(
    "--folder", default="", help="folder shared by all nodes; by default /shared if it is mounted, else this folder"
)
parser.add_argument(
    "--shrink", action=argparse.BooleanOptionalAction, default=True, help="the life after the last crash has half of the ranks"
)
args = parser.parse_args()
if min(args.steps, args.crash_at, args.layers, args.width // 4, args.save_every) < 1 or args.width % 4:
    parser.error("--steps, --crash-at, --save-every and --layers must be at least 1, --width a multiple of 4")
if min(args.crashes, args.crash_rank, args.step_s) < 0:
    parser.error("--crashes, --crash-rank and --step-s must be at least 0")
if args.crashes and args.crash_at + args.crashes > args.steps:
    parser.error("--crash-at + --crashes must be at most --steps: each life crashes one step later, and the last one finishes")

warnings.filterwarnings("ignore", "torch.distributed is disabled")  # each rank reads on its own, so that one can fail alone

# --- set-up ------------------------------------------------------------------------------------------------------------
joined = time.time()
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
be_repeatable(device)
world.give_up_together(f"{BATCH} sequences are not shared equally by {size} ranks" if BATCH % size else None)
text = counting_text(SEQUENCES, LENGTH, VOCABULARY, torch.Generator().manual_seed(SEED)).to(device)


def agree(value: object) -> object:
    """Return the value of rank 0, on every rank."""
    values = [value]
    dist.broadcast_object_list(values, src=0, group=world.waiting_room)
    return values[0]


def open_folder() -> Path:
    """Return the folder that all ranks and all lives share. The first life empties the folder, to remove an earlier run's
    files.

    A life is a later one if torchrun says so, or if it began under the same id (--rdzv-id), because torchrun does not count a
    change of the number of nodes as a restart.
    """
    root, training = checkpoints.choose_root(world, args.folder), os.environ.get("TORCHELASTIC_RUN_ID", "none")
    if rank == 0:
        is_known = (root / "training.json").exists() and json.loads((root / "training.json").read_text()) == training != "none"
        if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0" and not is_known:
            for path in [*root.glob("step_*"), *root.glob("of_no_step"), *root.glob("*.json*")]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (root / "training.json").write_text(json.dumps(training))
    world.wait_for_all()
    return root


def note(name: str, row: dict[str, object]) -> None:
    """Append a line to a file that outlives this process."""
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read_notes(name: str) -> list[dict[str, object]]:
    """Return the lines of such a file, in order."""
    path = folder / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


# --- the training, in which every step depends only on its number ------------------------------------------------------------
def build() -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return the model, its weights sharded over the ranks of this life (FSDP2), and its optimizer."""
    torch.manual_seed(SEED)
    model = Transformer(VOCABULARY, LENGTH, args.width, 4, args.layers).to(device)
    mesh = DeviceMesh.from_group(group, device.type)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=False)
    for weight in model.parameters():  # a load fills tensors, so there must be some before the first step
        moments = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
        optimizer.state[weight] = {"step": torch.tensor(0.0), **moments}
    return model, optimizer


def choose_batch(step: int) -> torch.Tensor:
    """Return the batch of a step, for all ranks together. It is the same in every life, with any number of ranks."""
    source = torch.Generator().manual_seed(SEED + step)
    return text[torch.randint(len(text), (BATCH,), generator=source)]


def collect_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return this rank's slices of the weights and of the optimizer's tensors, by name. The batch follows from the step."""
    tensors = {}
    for name, weight in model.named_parameters():
        tensors[name] = weight.detach()
        tensors |= {f"{name}.{key}": value for key, value in optimizer.state[weight].items()}
    return tensors


class FsdpWorker:
    """The worker of elastic.py on this rank, with a real model."""

    steps, every, batch = args.steps, args.save_every, BATCH

    def __init__(self, *, life: int | None) -> None:
        """`life` is the number of the life, or None for the undisturbed run, which saves nothing and never crashes."""
        self.rank, self.size, self.life = dist.get_rank(group), dist.get_world_size(group), life
        self.losses: list[float] = []
        self.last_step, self.has_ended, self.call_began = 0, False, time.monotonic()
        self.reset()

    def _together(self, name: str, call: Callable[[], Any], step: int = 0) -> Any:
        """Return the result of a collective call. Raise PeerLostError if another rank is gone.

        First, the ranks compare their calls, because gloo ends a process if the ranks make different collectives.
        """
        self.call_began = time.monotonic()
        try:
            own_call = step * len(CALLS) + CALLS.index(name)
            codes = torch.tensor([own_call, -own_call])
            dist.all_reduce(codes, op=dist.ReduceOp.MAX, group=saving)
            if codes[0] != -codes[1]:
                names = [CALLS[code % len(CALLS)] + f" of step {code // len(CALLS)}" * (code >= len(CALLS))
                         for code in (-codes[1].item(), codes[0].item())]  # fmt: skip
                place = find_place(traceback.extract_stack())
                give_up_part(f"{place}: the ranks do different things at the same time: {' and '.join(names)}")
            return call()
        except RuntimeError as error:  # torch's traceback through FSDP has 40 lines
            raise PeerLostError(str(error).splitlines()[0][:160]) from None
        finally:
            self.call_began = time.monotonic()

    def join(self) -> None:
        """Wait until all ranks of this life are here."""
        self._together("join", lambda: dist.barrier(group))

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks."""
        values: list[Any] = [None] * self.size
        self._together("gather", lambda: dist.all_gather_object(values, value, group=group))
        return values

    def list_steps(self) -> list[int]:
        """Return the steps in the names of the checkpoints' folders."""
        steps = [checkpoints.read_step(path) for path in folder.iterdir()]
        return [step for step in steps if step is not None]

    def load(self, step: int) -> None:
        """Fill model and optimizer from a checkpoint, even if another number of ranks saved it."""
        path = checkpoints.choose_folder(folder, step)
        tensors = collect_tensors(self._model, self._optimizer)
        if not (path / checkpoints.METADATA).is_file():
            say(f"rank {rank} cannot load {path.name}: it has no {checkpoints.METADATA}")
            raise DamagedCheckpointError(step)
        try:
            dcp.load(tensors, checkpoint_id=path, no_dist=True)
        except (Exception, CheckpointException) as error:  # noqa: BLE001  # a file that was cut off fails in any way
            say(f"rank {rank} cannot load {path.name}: {type(error).__name__}")
            raise DamagedCheckpointError(step) from None
        self.last_step = step

    def reset(self) -> None:
        """Build model and optimizer anew."""
        self._model, self._optimizer = build()

    def train_step(self, step: int, sequences: Sequence[int]) -> float:
        """Take one step, and return the mean loss over all ranks' sequences before that step."""
        start, batch = time.perf_counter(), choose_batch(step)[list(sequences)]
        self._optimizer.zero_grad()

        def compute() -> float:
            loss = nn.functional.cross_entropy(self._model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            loss.backward()
            self._optimizer.step()
            mean = loss.detach().double()
            dist.all_reduce(mean, group=group)
            return mean.item() / self.size

        loss = self._together("train_step", compute, step)
        time.sleep(max(0.0, args.step_s - (time.perf_counter() - start)))  # a small model takes hardly any time
        self.losses.append(loss)
        self.last_step = step
        if rank == 0 and self.life is not None:
            note("losses.jsonl", {"life": self.life, "step": step, "loss": loss, "at": time.time()})
        if step % self.every or self.life is None:
            self._crash_after(step)
        return loss

    def save(self, step: int) -> None:
        """Write a checkpoint. Every rank writes its slices, and `.metadata` comes last."""
        if self.life is None:
            return
        tensors, path = collect_tensors(self._model, self._optimizer), checkpoints.choose_folder(folder, step)
        self._together("save", lambda: write_checkpoint(tensors, path), step)
        self._crash_after(step)

    def _crash_after(self, step: int) -> None:
        """End this process if its crash is due. As after a power cut, its newest file is incomplete."""
        if self.life is None or self.life >= args.crashes or step != args.crash_at + self.life:
            return
        if self.rank != min(args.crash_rank, self.size - 1):
            return
        for path in checkpoints.list_whole(folder)[-1:]:
            file = path / f"__{self.rank}_0.distcp"
            os.truncate(file, file.stat().st_size // 2)
            say(f"rank {rank} had written only half of {path.name}/{file.name}")
        note("crashes.jsonl", {"life": life})
        say(f"rank {rank} ends itself after step {step}, in life {life}: exit code {CRASH_CODE}, without a message to others")
        os._exit(CRASH_CODE)


def write_checkpoint(tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Write a checkpoint in place of an earlier attempt. What all ranks have in common is in the file of rank 0."""
    if rank == 0:
        checkpoints.remove(path)
    dist.barrier(saving)
    dcp.save(tensors, checkpoint_id=path, process_group=saving, planner=DefaultSavePlanner(dedup_save_to_lowest_rank=True))


# --- your part, and what does the training while it is open or after it has failed --------------------------------------------
def train_by_rank_0(worker: FsdpWorker) -> None:
    """Train from the newest whole checkpoint to the last step. Rank 0 chooses it, since it can check all files."""
    worker.join()
    complete_paths = checkpoints.list_whole(folder) if rank == 0 and worker.life is not None else []
    steps_done = worker.gather(checkpoints.read_step(complete_paths[-1]) if complete_paths else 0)[0]
    if steps_done:
        worker.load(steps_done)
    for step in range(steps_done + 1, worker.steps + 1):
        worker.train_step(step, range(worker.rank, worker.batch, worker.size))
        if step % worker.every == 0:
            worker.save(step)


def give_up_part(text: str) -> NoReturn:
    """Note why your part failed, and end this process. The next life trains without it."""
    say(f"rank {rank}: your part failed: {text}")
    note("part.jsonl", {"life": life, "text": f"rank {rank}: {text}"})
    os._exit(1)


def find_place(frames: traceback.StackSummary) -> str:
    """Return the innermost line of your file in the frames, or the file's name if there is none."""
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == "my_worker.py"]
    return f"my_worker.py:{lines[-1]}" if lines else "my_worker.py"


def watch(worker: FsdpWorker, thread: int) -> None:
    """Give up the part if it makes no call, or waits in one, for too long."""
    while not worker.has_ended:
        time.sleep(0.5)
        if not worker.has_ended and time.monotonic() - worker.call_began > MAX_CALL_S:
            if any(row["life"] == life for row in read_notes("crashes.jsonl")):
                os._exit(1)  # with NCCL a call may wait much longer for the rank that crashed
            frames = traceback.extract_stack(sys._current_frames()[thread])  # noqa: SLF001
            give_up_part(f"{find_place(frames)}: it has waited or computed for {MAX_CALL_S:.0f} s")


def train_by_part(worker: FsdpWorker) -> str:
    """Train with your loop, or without it if it is not written yet. Return the name of the loop that trained."""
    threading.Thread(target=watch, args=(worker, threading.get_ident()), daemon=True).start()
    try:
        import my_worker  # imported here, because a mistake in this file must not end the run

        my_worker.train(worker)
        if worker.last_step != args.steps:
            give_up_part(f"train returned after step {worker.last_step} of {args.steps}")
    except NotImplementedError as error:
        if rank == 0:
            say(f"{error}  Once it is written, your loop trains here, and the table says so.")
        worker.has_ended = True
        worker.reset()
        train_by_rank_0(worker)
        return OPEN
    except PeerLostError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # the run names any error, and continues without the part
        give_up_part(f"{find_place(traceback.extract_tb(error.__traceback__))}: {type(error).__name__}: {str(error)[:160]}")
    worker.has_ended = True
    return YOURS


# --- one life ----------------------------------------------------------------------------------------------------------------
folder = open_folder()
life = agree(len(read_notes("lives.jsonl")))
active = max(1, size // 2) if args.shrink and 0 < args.crashes <= life else size
group, saving = dist.new_group(list(range(active))), checkpoints.make_group(list(range(active)))
facts = agree(json.loads((folder / "facts.json").read_text()) if rank == 0 and (folder / "facts.json").exists() else None)
if facts is None:  # the first life: a training run without a crash to compare with, and a checkpoint that was cut short
    undisturbed = FsdpWorker(life=None)
    train_by_rank_0(undisturbed)
    facts = {"losses": undisturbed.losses}
    if rank == 0:
        half = checkpoints.choose_folder(folder, args.steps + 100)
        half.mkdir()
        (half / "__0_0.distcp").write_bytes(b"\0" * 512)  # its rank was killed while it wrote
        (folder / "facts.json").write_text(json.dumps(facts))
failures = agree(read_notes("part.jsonl"))
if rank == 0:
    complete_paths = checkpoints.list_whole(folder)
    note("lives.jsonl", {"life": life, "ranks": active, "joined": joined, "tries_part": not failures,
                         "newest": checkpoints.read_step(complete_paths[-1]) if complete_paths else 0})  # fmt: skip
    say(f"life {life}: {active} of {size} ranks train, a save every {args.save_every} steps")
loop = FAILED
if rank < active:
    worker = FsdpWorker(life=life)
    try:
        if failures:
            train_by_rank_0(worker)
        else:
            loop = train_by_part(worker)
    except PeerLostError as error:
        say(f"rank {rank} fails in life {life}, after step {worker.last_step}: {error}")
        os._exit(1)
try:
    world.wait_for_all()
except RuntimeError:  # a rank that does not train in this life notices here
    os._exit(1)


# --- the record --------------------------------------------------------------------------------------------------------------
def describe_lives() -> list[dict[str, object]]:
    """Return a row for each life: its ranks, loop, first and last step, times and end, and the steps that the next life
    repeated."""
    rows, every_loss, lives = [], read_notes("losses.jsonl"), read_notes("lives.jsonl")
    failed_lives = {row["life"] for row in read_notes("part.jsonl")}
    for noted in lives:
        own_losses = [row for row in every_loss if row["life"] == noted["life"]]
        name = FAILED if not noted["tries_part"] else OPEN if is_open else YOURS
        end = "finished" if noted is lives[-1] else "your loop failed" if noted["life"] in failed_lives else "crashed"
        row = {"life": noted["life"], "ranks": noted["ranks"], "loop": name, "ended": end, "newest": noted["newest"]}
        if own_losses:
            first, last = own_losses[0], own_losses[-1]
            row |= {"resumed_at": first["step"] - 1, "last_step": last["step"], "first_step_s": first["at"] - noted["joined"],
                    "began": first["at"], "until": last["at"]}  # fmt: skip
        rows.append(row)
    trained = [row for row in rows if "began" in row]
    for before, after in itertools.pairwise(trained):
        before["lost_steps"] = before["last_step"] - after["resumed_at"]
    return rows


def compare_losses(every_loss: list[dict[str, object]]) -> dict[str, object]:
    """Return the largest differences of the losses: from those of the run without a crash, and in steps that were repeated."""
    first, repeated = {}, []
    for row in every_loss:
        if row["step"] in first:
            repeated.append(abs(row["loss"] - first[row["step"]]))
        first.setdefault(row["step"], row["loss"])
    off = [abs(row["loss"] - facts["losses"][row["step"] - 1]) for row in every_loss if row["step"] <= args.steps]
    return {"loss_off": max(off), "repeat_off": max(repeated, default=0.0), "repeated_steps": len(repeated)}


def count_irregular_steps(every_loss: list[dict[str, object]]) -> int:
    """Return how many steps do not follow the step before them in their life, or in the life before."""
    count, last_step, current = 0, 0, None
    for row in every_loss:
        follows = row["step"] == last_step + 1 if row["life"] == current else row["step"] <= last_step + 1
        count, last_step, current = count + (not follows), row["step"], row["life"]
    return count


if rank == 0:
    is_open = loop == OPEN
    rows, every_loss = describe_lives(), read_notes("losses.jsonl")
    trained = [row for row in rows if "began" in row]
    gaps = [after["began"] - before["until"] for before, after in itertools.pairwise(trained)]
    lost_steps = max((row["lost_steps"] for row in trained[:-1]), default=0)
    metrics = {
        **vars(args), "lives": rows, "planned_lives": args.crashes + 1, "last_step": trained[-1]["last_step"],
        "losses": [{"life": "undisturbed", "step": step, "loss": loss} for step, loss in enumerate(facts["losses"], start=1)]
        + [{**row, "life": f"life {row['life']}"} for row in every_loss],  # later lines are drawn on top of earlier ones
        **compare_losses(every_loss), "irregular_steps": count_irregular_steps(every_loss),
        "needless_steps": max(row["newest"] - row["resumed_at"] for row in trained),
        "lost_steps": lost_steps, "lost_intervals": lost_steps / args.save_every, "recovery_s": max(gaps, default=None),
        "your_lives": None if is_open else sum(row["loop"] == YOURS and row["ended"] != "your loop failed" for row in rows),
        "part_failed": failures[0]["text"] if failures else "no", "restarts": life, "backend": dist.get_backend(),
    }  # fmt: skip
    titles = {"life": "life", "ranks": "ranks", "loop": "loop", "resumed_at": "from step", "last_step": "to step"}
    bench.say_table(rows, titles | {"ended": "ended", "lost_steps": "steps lost", "first_step_s": "back after s"})
    say(f"The losses differ from those of the undisturbed run by at most {metrics['loss_off']:.1e} nats.")
    if failures:
        say(f"Your part failed, and the later lives trained without it. {metrics['part_failed']}")
    if device.type == "cpu":
        say("Losses, steps and lives are the same anywhere. Times are this computer's, prolonged by --step-s.")
    path = bench.write_metrics("fault_tolerance/2", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)
world.wait_for_all()
dist.destroy_process_group()
