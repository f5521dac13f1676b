"""Scaling efficiency: the same training with 1, 2 and 4 workers in one run, strong and weak, and where the time is lost.

You will learn    how to measure a scaling curve fairly; what strong and weak scaling promise; how to tell communication from
                  slower computing; what a serial part and overhead look like
You will produce  proof that each group of workers trains one model; metrics.json and the curve with the ideal line
Run it            torchrun --nproc-per-node=4 scaling_efficiency.py --batch-size 128 --hidden 256 --steps 20   (four ranks)
                  torchrun --nnodes=4 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           scaling_efficiency.py     (on the first node; --node-rank=1, 2 and 3 on the others)
Your part         `diagnose` in my_diagnosis.py, which then judges the two curves that were measured here
Reading           modules/03-parallel-computing/lesson-4-bytes.md, "The scaling curve"
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import own_part
import ranks
import scaling
import torch
import torch.distributed as dist
from bench import say
from ranks import flat
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SEED, CLASSES, PIXELS = 0, 10, 784

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a scaling curve: 1, 2, 4 ... workers, strong and weak, in one run")
parser.add_argument("--workers", type=int, default=4, help="the largest number of workers; at most all ranks")
parser.add_argument("--batch-size", type=int, default=2048, help="samples; weak: of each worker; strong: of all together")
parser.add_argument("--hidden", type=int, default=2048, help="width of the hidden layers")
parser.add_argument("--depth", type=int, default=3, help="number of hidden layers")
parser.add_argument("--steps", type=int, default=50, help="timed steps of each measurement, after a fifth as many to warm up")
args = parser.parse_args()
if min(vars(args).values()) < 1 or args.batch_size < args.workers:
    parser.error("every value must be at least 1, and --batch-size at least --workers: a sample for each")

# --- set-up: data with something to learn, a model -------------------------------------------------------------------------
learner_part = own_part.Process("my_diagnosis.py")  # it waits until the course's own measurements are done
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
torch.backends.cuda.matmul.allow_tf32 = False
counts = scaling.counts(min(args.workers, size))
source = torch.Generator().manual_seed(SEED)
images = torch.randn(args.batch_size * counts[-1], PIXELS, generator=source)
labels = (images @ torch.randn(PIXELS, CLASSES, generator=source)).argmax(dim=1)  # a teacher network sets the labels
say(f"rank {rank} of {size} on {bench.node_label()} ({device}): {', '.join(map(str, counts))} workers, one after another")


def build(group: dist.ProcessGroup | None) -> nn.Module:
    torch.manual_seed(SEED)
    hidden_layers = [layer for _ in range(args.depth - 1) for layer in (nn.Linear(args.hidden, args.hidden), nn.ReLU())]
    model = nn.Sequential(nn.Linear(PIXELS, args.hidden), nn.ReLU(), *hidden_layers, nn.Linear(args.hidden, CLASSES)).to(device)
    if group is None:
        return model
    return DistributedDataParallel(model, process_group=group, device_ids=[device] if device.type == "cuda" else None)


def backward(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    model.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(model(x), y).backward()


# --- one trial: the first n ranks are the workers; the others wait without using a core -------------------------------------
def trial(n: int, batch: int, group: dist.ProcessGroup | None) -> dict[str, object]:
    whole, own_share = slice(batch * n), slice(batch * rank, batch * (rank + 1))
    x, y, trained = images[own_share].to(device), labels[own_share].to(device), 0
    model = build(group)
    backward(model, x, y)
    gradient, error = flat(weight.grad for weight in model.parameters()), None
    if rank == 0:  # the average of the shares' gradients is the gradient of the whole batch, for any n
        backward(single := build(None), images[whole].to(device), labels[whole].to(device))
        right = flat(weight.grad for weight in single.parameters())
        error = ((gradient - right).abs().max() / right.abs().max()).item()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        nonlocal trained
        backward(model, x, y)
        optimizer.step()
        trained += len(y)

    bench.time_each(step, device, max(5, args.steps // 5))  # the first steps set up memory, buckets and connections
    trained = 0
    seconds = bench.time_each(step, device, args.steps)
    result = {"seconds": seconds, "trained": trained, "gradient_error": error}
    result["model"] = ranks.checksum(flat(model.parameters()))
    if isinstance(model, DistributedDataParallel):
        with model.no_sync():  # the same steps without AllReduce
            result["silent"] = bench.time_each(step, device, args.steps)
    return result


def slowest(per_worker: list[list[float]]) -> list[float]:
    return [max(step_seconds) for step_seconds in zip(*per_worker, strict=True)]


def measure(mode: str, n: int) -> dict[str, object]:
    """Measure n workers, and return a row with the results.

    Times are those of the slowest worker. Rates are added later, once the rates of one worker are known.
    """
    batch = args.batch_size if mode == "weak" else args.batch_size // n
    group = dist.new_group(range(n)) if n > 1 else None  # every rank must call this, even a rank outside the group
    own_trial = trial(n, batch, group) if rank < n else None
    world.wait_for_all()  # the others leave the machine to the workers
    workers = world.gather(own_trial)[:n]
    step_s = slowest([worker["seconds"] for worker in workers])
    silent_s = slowest([worker["silent"] for worker in workers]) if n > 1 else None
    if rank < n:
        say(f"rank {rank}: {n} workers, {mode}: {bench.percentile(step_s, 50) * 1e3:.2f} ms for {batch * n} samples")
    return {
        "mode": mode, "workers": n, "batch_per_worker": batch, "step_s": step_s,
        "silent_s": silent_s or [], **bench.spread_ms(step_s),
        "silent_ms": bench.percentile(silent_s, 50) * 1e3 if silent_s else None,
        "samples_missing": batch * n * args.steps - sum(worker["trained"] for worker in workers),
        "models": len({worker["model"] for worker in workers}), "gradient_error": workers[0]["gradient_error"],
    }  # fmt: skip


# --- the curve: one worker first, and again at the end, because every number depends on this baseline -----------------------
begin = measure("weak", 1)
rows = [measure(mode, n) if n > 1 else begin | {"mode": mode} for mode in ("weak", "strong") for n in counts]
end = measure("weak", 1)
drift_percent = 100 * (end["median_ms"] / begin["median_ms"] - 1)
alone_s = begin["step_s"] + end["step_s"]  # so the spread includes the drift
baseline = bench.spread_ms(alone_s) | {"step_s": alone_s}
rows = [row | baseline if row["workers"] == 1 else row for row in rows]
hosts = world.gather(bench.node_label())

# --- yours: what my_diagnosis.py says about both curves, if it is written -----------------------------------------------------
curves = {
    mode: [
        {"workers": row["workers"], "samples": row["workers"] * row["batch_per_worker"], "step_s": row["step_s"],
         "silent_s": row["silent_s"]}
        for row in rows if row["mode"] == mode
    ]
    for mode in ("weak", "strong")
}  # fmt: skip
outcome = learner_part.run(world, "scaling:diagnose_curves", curves=curves) if counts[-1] > 1 else None


def compare_diagnosis(final: dict[str, dict]) -> dict[str, object]:
    """Return the learner's rows, with their differences from the measured rows with the most workers."""
    if outcome is None or outcome.state != "ran":
        failure = outcome.text if outcome and outcome.state == "failed" else None
        return {
            "outcome": failure,
            "rows": [],
            "efficiency_off_points": None,
            "unexplained_percent": None,
            "contradictions": None,
        }
    answers = outcome.results[0]
    keys = ("mode", "workers")
    own_rows = [
        {"by": "yours", **{key: final[mode][key] for key in keys}, "efficiency_percent": answer["efficiency"],
         "communication_ms": answer["losses_ms"][scaling.COMMUNICATION],
         "slower_computing_ms": answer["losses_ms"][scaling.COMPUTING],
         "bottleneck": answer["bottleneck"], "overhead_grows": answer["overhead_grows"]}
        for mode, answer in answers.items()
    ]  # fmt: skip
    offs = [abs(row["efficiency_percent"] - final[row["mode"]]["efficiency_percent"]) for row in own_rows]
    unexplained = [
        abs(final[mode]["lost_ms"] - sum(answer["losses_ms"].values())) / final[mode]["median_ms"]
        for mode, answer in answers.items()
    ]
    contradictions = [answer for answer in answers.values() if scaling.contradicts(answer["bottleneck"], answer["losses_ms"])]
    return {
        "outcome": "ran", "rows": own_rows, "efficiency_off_points": max(offs), "unexplained_percent": 100 * max(unexplained),
        "contradictions": len(contradictions),
    }  # fmt: skip


# --- the record --------------------------------------------------------------------------------------------------------------
if rank == 0:
    for row in rows:
        n, share = row["workers"], row["batch_per_worker"] / args.batch_size
        row["samples_per_s"] = n * row["batch_per_worker"] / (row["median_ms"] / 1e3)
        row["speedup"] = scaling.speedup(row["samples_per_s"], rows[0]["samples_per_s"])
        row["efficiency_percent"] = scaling.efficiency_percent(row["speedup"], n)
        row["ideal_ms"] = baseline["median_ms"] * share
        row["lost_ms"] = row["median_ms"] - row["ideal_ms"]
        slow, fast = baseline["p20_ms"] / row["p80_ms"], baseline["p80_ms"] / row["p20_ms"]
        row["efficiency_low_percent"], row["efficiency_high_percent"] = 100 * share * slow, 100 * share * fast
        del row["step_s"], row["silent_s"]
    final = {row["mode"]: row for row in rows if row["workers"] == counts[-1] > 1}
    yours = compare_diagnosis(final)
    unnamed = dict.fromkeys(("communication_ms", "slower_computing_ms", "bottleneck", "overhead_grows"))
    breakdown = [{"by": "3.7", **row, **unnamed} for row in rows if row["workers"] > 1]
    own_losses = {row["mode"]: {key: row[key] for key in ("slower_computing_ms", "communication_ms")} for row in yours["rows"]}
    losses = [
        {"case": f"{row['mode']}, {row['workers']} workers", "lost_ms": row["lost_ms"], **own_losses.get(row["mode"], {})}
        for row in rows if row["workers"] == counts[-1]
    ]  # fmt: skip
    metrics = {
        **vars(args), "backend": dist.get_backend(), "hosts": hosts, "counts": counts, "largest": counts[-1],
        "gradient_bytes": 4 * sum(weight.numel() for weight in build(None).parameters()), "scaling": rows,
        "yours": yours, "breakdown": [*breakdown, *yours["rows"]], "losses": losses,
        "weak": [row for row in rows if row["mode"] == "weak"], "strong": [row for row in rows if row["mode"] == "strong"],
        "weak_efficiency_percent": final.get("weak", {}).get("efficiency_percent"),
        "strong_of_weak": final["strong"]["efficiency_percent"] / final["weak"]["efficiency_percent"] if size > 1 else None,
        "baseline_moved_percent": abs(drift_percent),
    }  # fmt: skip
    titles = {"mode": "mode", "workers": "workers", "median_ms": "step ms", "samples_per_s": "samples/s", "speedup": "x"}
    titles |= {"efficiency_percent": "efficiency %", "ideal_ms": "ideal ms", "silent_ms": "without AllReduce"}
    bench.say_table(rows, titles)
    if any(row["efficiency_percent"] > 100 for row in rows if row["workers"] > 1):
        say("An efficiency above 100 % means that one worker was measured too slow. Measure again before you believe any row.")
    say(f"one worker, measured again at the end: {drift_percent:+.1f} %; all figures are as uncertain as this one")
    if outcome and outcome.state == "open":
        say("my_diagnosis.py is unchanged. Once you write it, it judges these two curves.")
    elif outcome and outcome.state == "failed":
        say(f"your diagnosis did not run: {outcome.text}")
    for row in yours["rows"]:
        losses = f"{row['slower_computing_ms']:.2f} ms slower computing, {row['communication_ms']:.2f} ms communication"
        say(f"your diagnosis, {row['mode']}: {row['efficiency_percent']:.1f} %, {losses}, bottleneck: {row['bottleneck']}")
    if device.type == "cpu":
        reason = (
            "workers share the cores, so computing itself gets slower" if bench.is_on_one_computer() else "a GPU is far faster"
        )
        say(f"On CPUs correctness is meaningful, timings are not: {reason}.")
    path = bench.write_metrics("scaling_efficiency/1", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
