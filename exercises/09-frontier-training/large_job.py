"""One sick GPU among thousands: a job that hangs, a job that is slow, a flipped bit, and the accounts.

You will learn    why one rank stops all others, what each of them records, and which ranks only look guilty
You will produce  the culprits of a real and of two simulated hangs, of three slow jobs, and the MFU of a published training
Run it            python large_job.py --ranks-per-node=4                                               (four ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           large_job.py --ranks-per-node=2         (on the first node, --node-rank=1 on the second)
Your part         predict where the ranks wait; then my_hang.py, my_slow.py and my_accounts.py
Reading           modules/09-frontier-training/lesson-9-sick-gpu.md
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import pairwise
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import recorder  # before torch makes a group: it sets how much the flight recorder keeps  # isort: skip
import bench
import corrupt
import crew
import own_part
import ranks
import torch
import torch.distributed as dist
from bench import say
from job_trial import SLOW_JOBS, choose_kinds, read_accounts
from jobs import MAX_RANKS, Layout, find_lost_percent, hang, slow_down

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="find the sick GPU")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 on macOS")
parser.add_argument("--dp", type=int, default=32, help="copies of the model in the simulated jobs")
parser.add_argument("--pp", type=int, default=8, help="stages of each copy")
parser.add_argument("--tp", type=int, default=8, help="slices of each stage")
parser.add_argument("--micro-batches", type=int, default=8, help="micro-batches of a step, at least as many as stages")
parser.add_argument("--real-fault", choices=recorder.FAULTS, default="sleeps", help="what one of the real ranks does")
parser.add_argument("--steps", type=int, default=12, help="recorded steps of each slow job")
parser.add_argument("--pauses", type=float, default=3.0, help="ranks that pause in each step of a slow job, on average")
parser.add_argument("--clock-skew-ms", type=float, default=50.0, help="the largest error of the nodes' clocks")
parser.add_argument("--puzzle", type=int, default=1, help="what is planted, and where")
args = parser.parse_args()
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
layout = Layout(args.dp, args.pp, args.tp, args.micro_batches)
if args.ranks_per_node < 1 or min(args.dp, args.tp) < 3 or args.pp < 2 or args.steps < 4 or args.puzzle < 1:
    parser.error("--dp and --tp must be at least 3, --pp at least 2, --steps at least 4, and the others at least 1")
if layout.ranks > MAX_RANKS:
    parser.error(f"--dp x --pp x --tp are {layout.ranks:,} ranks: at most {MAX_RANKS:,} are simulated")
if args.micro_batches < args.pp:
    parser.error(f"--micro-batches ({args.micro_batches}) must be at least --pp ({args.pp}), to fill the pipeline")
if not 0 <= args.pauses <= 1000 or not 0 <= args.clock_skew_ms <= 1e6:
    parser.error("--pauses must be from 0 to 1000, and --clock-skew-ms from 0 to 1000000")
if size < 2:
    parser.error("one rank has no other rank to wait for: take two nodes (deploy 9 --nodes 2), or --ranks-per-node=4")
if size < 4 and args.real_fault != "sleeps":
    parser.error(f"{size} ranks that call different operations have no majority: take --real-fault=sleeps, or four ranks")

# --- set-up ------------------------------------------------------------------------------------------------------------
os.environ["GPUCOURSE_BACKEND"] = "gloo"  # the real ranks hang on CPUs; NCCL's recorder has another format
torch.set_num_threads(1)
crew.start(args.ranks_per_node)  # from here on this process is one rank
is_first = os.environ.get("RANK", "0") == "0"
parts = {name: own_part.Process(f"my_{name}.py") for name in ("hang", "slow", "accounts") if is_first}
world = ranks.join()

# --- the experiment ----------------------------------------------------------------------------------------------------
hosts = world.gather(bench.node_label())
logs = [world.gather(corrupt.train(world, place, culprit=world.size // 2)) for place in corrupt.PLACES]
real = world.gather(recorder.hang_really(world, args.real_fault, args.puzzle))
if world.rank > 0:
    dist.destroy_process_group()
    sys.exit()
corrupted = [corrupt.describe(place, log, logs[0]) for place, log in zip(corrupt.PLACES, logs, strict=True)]
real_culprit, real_kind = recorder.find_planted(args.real_fault, size, args.puzzle)
blamed = recorder.find_blamed(recorder.analyse(real), size)
numbers = [args.dp, args.pp, args.tp, args.micro_batches]
hangs = [hang(layout, fault, args.puzzle, skew_ms=args.clock_skew_ms) for fault in ("stops", "swaps")]
kinds = choose_kinds(args.puzzle)
slow_jobs = [
    slow_down(layout, kind, args.puzzle + number, steps=args.steps, pauses=args.pauses) for number, kind in enumerate(kinds)
]
outcomes = {
    "hang": parts["hang"].run(
        None, "job_trial:search_hangs", limit_s=30, layout=numbers, puzzle=args.puzzle, skew_ms=args.clock_skew_ms,
        real=[result["entries"] for result in real], members=recorder.list_halves(size),
    ),
    "slow": parts["slow"].run(
        None, "job_trial:search_slow", limit_s=60, layout=numbers, puzzle=args.puzzle, steps=args.steps, pauses=args.pauses
    ),
    "accounts": parts["accounts"].run(None, "job_trial:count_up", limit_s=15),
}  # fmt: skip
answers = {name: outcome.results[0] if outcome.state == "ran" else None for name, outcome in outcomes.items()}

# --- the record --------------------------------------------------------------------------------------------------------
hang_answers = answers["hang"]["answers"] if answers["hang"] else [[None, None]] * 3
slow_answers = answers["slow"]["answers"] if answers["slow"] else [[None, None]] * SLOW_JOBS
real_rows = [
    {"rank": rank, "error": result["error"], **({key: result["entries"][-1][key] for key in ("group", "number", "operation",
     "state")} if result["entries"] else {})}
    for rank, result in enumerate(real)
]  # fmt: skip
hang_rows = [
    {"job": name, "ranks": layout.ranks, **{f"waiting_in_{where}": job.count_waiting(where) for where in ("tp", "pp", "dp")},
     "yours": answer[0], "your_word": answer[1]}
    for name, job, answer in zip(("hang A", "hang B"), hangs, hang_answers[:2], strict=True)
]  # fmt: skip
right_hangs = [answer == [job.culprit, job.kind] for job, answer in zip(hangs, hang_answers[:2], strict=True)]
slow_rows = [
    {"job": f"slow {number + 1}", "step_s": float(job.step_s.median()),
     "lost_percent": find_lost_percent(layout, kinds[number], args.puzzle + number),
     "yours": answer[0], "your_number": answer[1]}
    for number, (job, answer) in enumerate(zip(slow_jobs, slow_answers, strict=True))
]  # fmt: skip
right_slow = [tuple(answer) == job.sick for job, answer in zip(slow_jobs, slow_answers, strict=True)]
accounts, account_rows = read_accounts(), []
for number, job in enumerate(accounts["jobs"]):
    percent = answers["accounts"]["mfu"][number] if answers["accounts"] else None
    account_rows.append({
        "job": job["name"], "tokens_per_s": job["tokens_per_s"], "published_percent": job["published_percent"],
        "published_tflops": job["published_tflops"], "mfu_percent": percent,
        "hfu_percent": answers["accounts"]["hfu"][number] if answers["accounts"] else None,
    })  # fmt: skip
trained_hours = sum(after["hour"] - entry["hour"] for entry, after in pairwise(accounts["log"]) if entry["event"] == "trains")
day_rows = [
    {"counted": "all hours of training", "percent": 100 * trained_hours / accounts["log"][-1]["hour"]},
    {"counted": "what is left of them, by yours",
     "percent": answers["accounts"]["goodput_percent"] if answers["accounts"] else None},
]  # fmt: skip
published_off = [abs(100 * job["published_tflops"] / job["peak_tflops"] - job["published_percent"]) for job in accounts["jobs"]]
waiting = {where: hang_rows[0][f"waiting_in_{where}"] for where in ("tp", "pp", "dp")}
yours = {
    "real_right": hang_answers[2] == [real_culprit, real_kind] if answers["hang"] else None,
    "hangs_right": sum(right_hangs) if answers["hang"] else None, "slow_right": sum(right_slow) if answers["slow"] else None,
    "off_points": max(abs(row["mfu_percent"] - row["published_percent"]) for row in account_rows)
    if answers["accounts"] else None,
    "goodput_off": abs(answers["accounts"]["goodput_percent"] - accounts["kept_percent"]) if answers["accounts"] else None,
}  # fmt: skip
metrics = {
    **vars(args), "ranks": [{"rank": number, "host": host} for number, host in enumerate(hosts)], "real": real_rows,
    "real_waiting": sum(row.get("state") == "waiting" for row in real_rows), "real_culprit": real_culprit,
    "torch_blames": blamed, "torch_agrees": None if blamed is None else blamed == [real_culprit],
    "hangs": hang_rows, "slow": slow_rows, "corrupt": corrupted, "accounts": account_rows,
    "hang": {"culprit": hangs[0].culprit, "waiting": sum(waiting.values()), "others": layout.ranks - 1,
             "waiting_in_dp_percent": 100 * waiting["dp"] / sum(waiting.values())},
    "waiting": [{"where": where, "ranks": count} for where, count in waiting.items()],
    "silent_seen_by_replay": corrupted[1]["seen_by_replay"], "silent_seen_by_checksum": corrupted[1]["seen_by_checksum"],
    "weight_seen_by_checksum": corrupted[2]["seen_by_checksum"], "false_alarms": sum(
        corrupted[0][key] for key in ("seen_by_norm", "seen_by_checksum", "seen_by_replay")),
    "published_off_points": max(published_off), "most_lost_percent": max(row["lost_percent"] for row in slow_rows),
    "day": day_rows, "log": accounts["log"], "figures": answers["accounts"], "yours": yours,
    "errors": {name: "no error" if outcome.state == "ran" else outcome.text for name, outcome in outcomes.items()},
}  # fmt: skip
say(f"\nThe last operation of each real rank, by torch's flight recorder; torch's analyser blames {blamed}")
bench.say_table(real_rows, {"rank": "rank", "group": "group", "number": "number", "operation": "operation", "state": "state"})
say(f"\nTwo simulated hangs of {layout.ranks:,} ranks: where they wait")
titles = {"job": "job", "waiting_in_tp": "in tp", "waiting_in_pp": "in pp", "waiting_in_dp": "in dp"}
bench.say_table(hang_rows, titles | {"yours": "yours", "your_word": "it"})
say(f"\nThree slow jobs, {args.steps} steps each")
bench.say_table(slow_rows, {"job": "job", "lost_percent": "longer by %", "yours": "yours", "your_number": "number"})
say("\nA flipped bit, and which checks notice it")
bench.say_table(
    corrupted, {"where": "where", "seen_by_norm": "norm", "seen_by_checksum": "checksums", "seen_by_replay": "replay"}
)
say("\nPublished trainings")
bench.say_table(account_rows, {"job": "job", "mfu_percent": "your MFU", "published_percent": "published", "hfu_percent": "HFU"})
say("\nA made-up day with four interruptions, in percent of its hours")
bench.say_table(day_rows, {"counted": "counted", "percent": "%"})
for name, outcome in outcomes.items():
    if outcome.state == "open":
        say(f"my_{name}.py is not written yet: its results would follow. {outcome.text}")
    elif outcome.state == "failed":
        say(f"my_{name}.py: {outcome.text}")
bench.keep_files(__file__, "my_hang.py", "my_slow.py", "my_accounts.py")
path = bench.write_metrics("large_job/1", world.device, world_size=size, seed=args.puzzle, metrics=metrics)
bench.say_end(path, world.device)
dist.destroy_process_group()
