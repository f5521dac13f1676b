"""A training run that loses a worker, restarts from its last whole checkpoint, and ends as if nothing had happened.

You will learn    what torchrun does when a rank dies; what a checkpoint has to contain; which one is whole; how often to save
You will produce  the losses of every life, step by step, and those of a run that never crashed; what the crash cost
Run it            torchrun --nproc-per-node=2 --max-restarts=2 fault_tolerance.py --steps 20 --crash-at 13 --step-s 0.05 \\
                           --save-s 0.1 --mtbf-s 1.25
Your part         `latest` and `save_every` in my_resume.py
Reading           modules/06-training-at-scale/lesson-9-crashes.md
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import shutil
import sys
import time
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import checkpoints
import my_resume
import ranks
import torch
import torch.distributed as dist
from bench import say
from sharded_training import be_repeatable
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from transformer import Transformer, counting_text

SEED, VOCABULARY, LENGTH, BATCH, SEQUENCES = 0, 64, 32, 48, 1024
CRASH_CODE = 9

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a training run that loses a worker and continues")
parser.add_argument("--steps", type=int, default=200, help="number of training steps")
parser.add_argument(
    "--crash-at", type=int, default=130, help="a rank ends itself after this step; in each later life, one step later"
)
parser.add_argument(
    "--crash-rank", type=int, default=1, help="the rank that ends itself; the last rank if there are fewer ranks"
)
parser.add_argument("--crashes", type=int, default=1, help="number of lives in which a rank ends itself")
parser.add_argument("--mtbf-s", type=float, default=40.0, help="mean time between failures, as passed to your save_every")
parser.add_argument("--step-s", type=float, default=0.2, help="minimum time of a step; 0 sets no minimum")
parser.add_argument("--save-s", type=float, default=2.0, help="minimum time of a save; 0 sets no minimum")
parser.add_argument("--width", type=int, default=256, help="width of the transformer; a multiple of 4")
parser.add_argument("--layers", type=int, default=4, help="layers of the transformer")
parser.add_argument(
    "--folder", default="", help="folder shared by all nodes; by default /shared if it is mounted, else this folder"
)
parser.add_argument(
    "--trust-latest", action=argparse.BooleanOptionalAction, default=False, help="load what your latest returns, whole or not"
)
args = parser.parse_args()
if min(args.steps, args.crash_at, args.layers, args.width // 4) < 1 or args.width % 4 or min(args.crashes, args.crash_rank) < 0:
    parser.error("--steps, --crash-at and --layers must be at least 1, --width a multiple of 4, --crashes at least 0")
if args.crashes and args.crash_at + args.crashes > args.steps:
    parser.error("--crash-at + --crashes must be at most --steps: each life crashes one step later, and the last one finishes")
if args.mtbf_s <= 0 or min(args.step_s, args.save_s) < 0:
    parser.error("--mtbf-s must be above 0, --step-s and --save-s at least 0")

# --- set-up ------------------------------------------------------------------------------------------------------------
joined = time.time()
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
be_repeatable(device)
world.give_up_together(f"{BATCH} sequences are not shared equally by {size} ranks" if BATCH % size else None)
crash_rank = min(args.crash_rank, size - 1)
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


def take(seconds: float, start: float) -> None:
    """Wait until `seconds` have passed since `start`. A small model takes hardly any time, but times should be realistic."""
    time.sleep(max(0.0, seconds - (time.perf_counter() - start)))


# --- the training, in which every step depends only on its number ------------------------------------------------------------
def build() -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return the model, its weights sharded over all ranks (FSDP2), and its optimizer."""
    torch.manual_seed(SEED)
    model = Transformer(VOCABULARY, LENGTH, args.width, 4, args.layers).to(device)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return model, torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=False)


def choose_batch(step: int) -> torch.Tensor:
    """Return this rank's share of a step's batch. Each life uses the same sequences, however many ranks share them."""
    source = torch.Generator().manual_seed(SEED + step)
    return text[torch.randint(len(text), (BATCH,), generator=source)].chunk(size)[rank]


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> float:
    """Take one step, and return the mean loss over all ranks' sequences before that step."""
    start, batch = time.perf_counter(), choose_batch(step)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    mean = loss.detach().double()
    dist.all_reduce(mean)
    take(args.step_s, start)
    return (mean / size).item()


def collect_state(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict[str, object]:
    """Return the state that determines the next step: weights, moments, and the step's number, which seeds the batch."""
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "step": step}


def save(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, checkpoint: Path) -> float:
    """Write a checkpoint, and return how many seconds that took. Every rank writes its slices, and `.metadata` comes last."""
    start = time.perf_counter()
    checkpoints.save(collect_state(model, optimizer, step), checkpoint, saving)
    took_s = time.perf_counter() - start
    take(args.save_s, start)
    return took_s


def load(model: nn.Module, optimizer: torch.optim.Optimizer, checkpoint: Path) -> int:
    """Fill model and optimizer from a checkpoint, even if another number of ranks saved it, and return its step."""
    state = collect_state(model, optimizer, 0)
    checkpoints.load(state, checkpoint, saving)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return int(state["step"])


# --- your part, and what the script does if it is wrong ---------------------------------------------------------------------
def choose_checkpoint() -> tuple[Path | None, bool, str | None]:
    """Return the checkpoint from which this life begins, whether `latest` chose one that is not whole, and the error of
    `latest`.

    No life can load a checkpoint that was cut off. The script then takes the newest whole one instead.
    """
    fault, choice = None, None
    try:
        choice = my_resume.latest(folder)
    except Exception as error:  # noqa: BLE001  # whatever the learner's function raises, the run says it and goes on
        traceback.print_exc()
        fault = type(error).__name__
    if args.trust_latest and fault is None:
        return choice, False, None
    whole = checkpoints.list_whole(folder)
    half = choice is not None and choice not in whole
    if half or fault:
        say(f"latest returned {choice}, which {'raised ' + fault if fault else 'is not whole'}: the script takes another")
        return whole[-1] if whole else None, half, fault
    return choice, False, None


def choose_interval(cost_s: float, step_s: float) -> tuple[int, str | None]:
    """Return the number of steps between saves, and the error that `save_every` raised, if any."""
    try:
        interval = my_resume.save_every(cost_s, step_s, args.mtbf_s)
        if isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
            raise ValueError(f"save_every returned {interval!r}, but a number of steps is a whole number of at least 1")
    except Exception as error:  # noqa: BLE001  # as above
        traceback.print_exc()
        return 1, type(error).__name__
    return interval, None


# --- the first life: a training without a crash to compare with, the cost of a save, and a checkpoint that was cut short -----
def begin() -> dict[str, object]:
    """Return the facts about the training run that all lives need. Rank 0 keeps them in a file."""
    model, optimizer = build()
    start = time.perf_counter()
    losses = [train_step(model, optimizer, step) for step in range(1, args.steps + 1)]
    step_s = args.step_s or world.slowest([time.perf_counter() - start])[0] / args.steps
    saves = [world.slowest([save(model, optimizer, 0, folder / "of_no_step")])[0] for _ in range(3)]
    cost_s = args.save_s or sorted(saves)[1]
    interval, fault = choose_interval(cost_s, step_s)
    if rank == 0:
        half = checkpoints.choose_folder(folder, args.steps + 100)
        half.mkdir()
        (half / "__0_0.distcp").write_bytes(b"\0" * 512)  # its rank was killed while it wrote
    young = max(1, round(math.sqrt(2 * cost_s * args.mtbf_s) / step_s))
    facts = {"losses": losses, "step_s": step_s, "cost_s": cost_s, "measured_save_s": sorted(saves)[1]}
    return facts | {"saved_every": interval, "young_every": young, "broken": fault}


saving = checkpoints.make_group()
folder = open_folder()
lives = agree(read_notes("lives.jsonl"))
life = len(lives)
facts = agree(json.loads((folder / "facts.json").read_text()) if rank == 0 and (folder / "facts.json").exists() else None)
if facts is None:
    facts = agree(begin())
    if rank == 0:
        (folder / "facts.json").write_text(json.dumps(facts))
every = facts["saved_every"]

# --- one life ----------------------------------------------------------------------------------------------------------------
model, optimizer = build()
checkpoint, half_written, broken = agree(choose_checkpoint() if rank == 0 else None)
steps_done = load(model, optimizer, checkpoint) if checkpoint is not None else 0
if rank == 0:
    say(f"life {life}: {size} ranks, a save every {every} steps, from {checkpoint.name if checkpoint else 'the beginning'}")
    note("lives.jsonl", {"life": life, "world": size, "joined": joined, "resumed_at": steps_done, "half_written": half_written,
                         "broken": broken})  # fmt: skip
for step in range(steps_done + 1, args.steps + 1):
    try:
        loss = train_step(model, optimizer, step)
    except RuntimeError as error:  # a collective whose other rank is gone; torch's traceback through FSDP has 40 lines
        say(f"rank {rank} fails in step {step}, life {life}: {str(error).splitlines()[0][:160]}")
        os._exit(1)
    if rank == 0:
        note("losses.jsonl", {"life": life, "step": step, "loss": loss, "at": time.time()})
    if step % every == 0:
        save(model, optimizer, step, checkpoints.choose_folder(folder, step))
    if life < args.crashes and step == args.crash_at + life and rank == crash_rank:
        say(f"rank {rank} ends itself after step {step}, in life {life}: exit code {CRASH_CODE}, without a message to others")
        os._exit(CRASH_CODE)
world.wait_for_all()


# --- the record --------------------------------------------------------------------------------------------------------------
def describe_lives() -> list[dict[str, object]]:
    """Describe each life: where it began, how soon its first step was done, where it ended, and which steps the next life
    repeated."""
    rows, every_loss, lives = [], read_notes("losses.jsonl"), read_notes("lives.jsonl")
    for noted in lives:
        own_losses = [row for row in every_loss if row["life"] == noted["life"]]
        following = [row for row in lives if row["life"] == noted["life"] + 1]
        last, resumed_at = own_losses[-1]["step"], following[0]["resumed_at"] if following else None
        rows.append({
            "life": noted["life"], "world": noted["world"], "resumed_at": noted["resumed_at"], "last_step": last,
            "first_step_s": own_losses[0]["at"] - noted["joined"], "ended": "crashed" if following else "finished",
            "lost_steps": last - resumed_at if following else None, "began": own_losses[0]["at"], "until": own_losses[-1]["at"],
        })  # fmt: skip
    return rows


def compare_losses(every_loss: list[dict[str, object]]) -> dict[str, object]:
    """Return how far the losses differ from those of the run without a crash, and from each other in repeated steps."""
    first, repeated = {}, []
    for row in every_loss:
        if row["step"] in first:
            repeated.append(abs(row["loss"] - first[row["step"]]))
        first.setdefault(row["step"], row["loss"])
    off = [abs(row["loss"] - facts["losses"][row["step"] - 1]) for row in every_loss]
    return {"loss_off": max(off), "repeat_off": max(repeated, default=0.0), "repeated_steps": len(repeated)}


def weigh_interval(owner: str, steps: int) -> dict[str, object]:
    """Return the cost of an interval between saves in percent.

    The cost is the time of the saves, plus half an interval for each failure.
    """
    seconds = steps * facts["step_s"]
    saving, losing = 100 * facts["cost_s"] / seconds, 100 * seconds / 2 / args.mtbf_s
    return {"whose": owner, "steps": steps, "seconds": seconds, "saving_percent": saving, "losing_percent": losing}


if rank == 0:
    rows, every_loss = describe_lives(), read_notes("losses.jsonl")
    gaps = [after["began"] - before["until"] for before, after in itertools.pairwise(rows)]
    wall_s = rows[-1]["until"] - rows[0]["began"] + facts["step_s"]
    metrics = {
        **vars(args), "lives": rows, "planned_lives": args.crashes + 1, "last_step": rows[-1]["last_step"],
        "losses": [{"life": "undisturbed", "step": step, "loss": loss} for step, loss in enumerate(facts["losses"], start=1)]
        + [{**row, "life": f"life {row['life']}"} for row in every_loss],  # later lines are drawn on top of earlier ones
        **compare_losses(every_loss), "loss_after": every_loss[-1]["loss"], "undisturbed_loss_after": facts["losses"][-1],
        "lost_steps": max((row["lost_steps"] for row in rows[:-1]), default=0), "saved_every": every,
        "recovery_s": max(gaps, default=None), "cost_s": facts["cost_s"], "measured_save_s": facts["measured_save_s"],
        "step_seconds": facts["step_s"], "young_every": facts["young_every"],
        "intervals": [weigh_interval("yours", every), weigh_interval("by Young", facts["young_every"])],
        "interval_off": max(every / facts["young_every"], facts["young_every"] / every),
        "saved_each_step": every == 1 < facts["young_every"],
        "useful_percent": 100 * args.steps * facts["step_s"] / wall_s,
        "half_written_taken": sum(row["half_written"] for row in read_notes("lives.jsonl")),
        "resume_broken": facts["broken"] or next((row["broken"] for row in read_notes("lives.jsonl") if row["broken"]), "no"),
        "restarts": life, "backend": dist.get_backend(),
    }  # fmt: skip
    titles = {"life": "life", "world": "ranks", "resumed_at": "from step", "last_step": "to step", "ended": "ended"}
    bench.say_table(rows, titles | {"lost_steps": "steps lost", "first_step_s": "back after s"})
    say(f"A save every {every} steps; by Young's formula every {facts['young_every']}. Loss off: {metrics['loss_off']:.1e}")
    if device.type == "cpu":
        say("Losses, steps and lives are the same anywhere. Times are this computer's, prolonged by --step-s and --save-s.")
    path = bench.write_metrics("fault_tolerance/1", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)
world.wait_for_all()
dist.destroy_process_group()
