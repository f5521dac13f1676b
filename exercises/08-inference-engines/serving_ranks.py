"""One model on several ranks: slices with a cache, a choice of the token, experts on other ranks, and keys that change ranks.

You will learn    what each rank of an inference engine holds and sends, and when further ranks save no memory
You will produce  tokens of 1, 2, 4 and 8 slices that equal those of one process; bytes of a step, of experts, of a hand-over
Run it            python serving_ranks.py --ranks-per-node=4                                          (four ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           serving_ranks.py --ranks-per-node=1     (on the first node, --node-rank=1 on the second)
Your part         predict what more slices gain; then my_heads.py, my_choice.py and my_experts.py
Reading           modules/08-inference-engines/lesson-8-ranks.md
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import crew
import own_part
import ranks
import torch
import torch._dynamo  # collectives import it, which takes seconds: here it is imported once for all ranks
import torch.distributed as dist
from bench import say
from cards import CARDS
from expert_ranks import PER_TOKEN, Experts, send_all_tokens
from handed import hand_over
from ranks_report import (
    Report,
    find_bytes_by_expert,
    find_experts_bytes,
    find_heaviest,
    find_speed_up,
    list_placements,
    list_steps,
)
from sliced_model import HEADS, HELD_HEADS, KV_HEADS, choose_from_all, serve
from step_clock import GPUS

SEED, PROMPT_TOKENS, TOKENS_PER_RANK = 2, 37, 10
CHOICE_BYTES = 16  # a score and a number, in 64 bits each
OPEN = dict.fromkeys(("tokens_off", "bytes", "most_by_one_bytes", "bytes_per_step", "off", "cache_off"))
CARD_NAMES = ("llama-2-7b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "qwen2.5-72b")

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="one model on several ranks")
parser.add_argument("--ranks-per-node", type=int, default=4, help="ranks forked on each node; 1 on macOS")
parser.add_argument("--senders", type=int, default=1, help="ranks that compute the prompt of the hand-over: 1, 2, 4 or 8")
parser.add_argument("--receivers", type=int, default=2, help="ranks that compute its answer: 1, 2, 4 or 8")
parser.add_argument("--tokens", type=int, default=20, help="tokens of each answer")
parser.add_argument("--experts", type=int, default=8, help="experts of the layer, a multiple of the number of ranks")
parser.add_argument("--card", choices=CARD_NAMES, default="llama-3.1-70b", help="the model of the simulated decode step")
parser.add_argument("--gpu", choices=[*GPUS], default="h100", help="the GPU of the simulated decode step")
parser.add_argument("--batch", type=int, default=32, help="requests in the simulated decode step")
args = parser.parse_args()
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
if min(args.ranks_per_node, args.senders, args.receivers, args.batch) < 1 or args.tokens < 2 or args.experts < PER_TOKEN:
    parser.error(f"--tokens must be at least 2, --experts at least {PER_TOKEN}, and all other numbers at least 1")
if size < 2:
    parser.error("one rank has nothing to divide: take two nodes (deploy 8 --nodes 2), or --ranks-per-node=2")
for name, count in (("--senders", args.senders), ("--receivers", args.receivers)):
    if count > HEADS or HEADS % count:
        parser.error(f"{name} ({count}) does not divide the model's {HEADS} query heads: use 1, 2, 4 or 8")
if args.senders + args.receivers > size:
    parser.error(f"--senders ({args.senders}) and --receivers ({args.receivers}) need as many ranks together, and {size} exist")
if args.experts % size:
    parser.error(f"--experts ({args.experts}) must be a multiple of the number of ranks, {size}")

# --- set-up ------------------------------------------------------------------------------------------------------------
os.environ["GPUCOURSE_BACKEND"] = "gloo"  # the compared results are computed on CPUs, in float64
torch.set_num_threads(1)
crew.start(args.ranks_per_node)  # from here on this process is one rank
heads_part, choice_part = own_part.Process("my_heads.py"), own_part.Process("my_choice.py")
experts_part = own_part.Process("my_experts.py")
world = ranks.join()
prompt = torch.randint(256, (PROMPT_TOKENS,), generator=torch.Generator().manual_seed(SEED)).tolist()
report = Report(size, prompt, args.tokens)
layer = Experts(args.experts, TOKENS_PER_RANK * size)

# --- the experiment ----------------------------------------------------------------------------------------------------
hosts = world.gather(bench.node_label())
answers = serve(world, prompt, args.tokens, lambda rank, count, _heads: HELD_HEADS[count][rank], choose_from_all)
slices = report.list_slices("as delivered", world.gather(answers))
everything = hand_over(world, prompt, args.tokens, args.senders, args.receivers, None)
hand_overs = [report.make_hand_over_row("all heads to all", world.gather(everything))]
experts = [{"label": "all tokens to all", **world.gather(send_all_tokens(world, layer))[0]}]
experts.append({"label": "a row for each expert (by formula)", "off": None, "bytes": find_bytes_by_expert(layer, size)})
numbers = torch.zeros(args.batch * CARDS[args.card].width // 2)  # float32: as many bytes as the activations in 16 bits
reduce_s = []
for _ in range(12):
    world.wait_for_all()
    start = time.perf_counter()
    dist.all_reduce(numbers)
    reduce_s.append(world.slowest([time.perf_counter() - start])[0])
serving: dict[str, Any] = {"prompt": prompt, "count": args.tokens}
cut = {"senders": args.senders, "receivers": args.receivers}
outcomes = {
    "heads": heads_part.run(world, "handed:serve_with_your_heads", limit_s=40, **serving, **cut),
    "choice": choice_part.run(world, "sliced_model:serve_with_your_choice", limit_s=30, **serving),
    "experts": experts_part.run(world, "expert_ranks:send_with_yours", limit_s=30, experts=args.experts, tokens=len(layer.x)),
}
if world.rank > 0:
    dist.destroy_process_group()
    sys.exit()

# --- the record --------------------------------------------------------------------------------------------------------
delivered = list(slices)
yours: dict[str, Any] = {"heads": OPEN, "choice": OPEN, "handed": OPEN, "experts": OPEN}
if outcomes["heads"].state == "ran":
    rows = report.list_slices("your heads", [result["slices"] for result in outcomes["heads"].results])
    hand_overs.append(report.make_hand_over_row("your pieces", [result["handed"] for result in outcomes["heads"].results]))
    slices += rows
    yours |= {
        "heads": {key: max(row[key] for row in rows) for key in ("tokens_off", "bytes_per_step")},
        "handed": hand_overs[1],
    }
    gaps = [abs(row["cache_bytes"] - its["cache_bytes"]) for row, its in zip(rows, delivered, strict=True)]
    yours["heads"]["cache_off"] = max(gaps)
if outcomes["choice"].state == "ran":
    rows = report.list_slices("your choice", outcomes["choice"].results, CHOICE_BYTES)
    slices += rows
    yours["choice"] = {key: max(row[key] for row in rows) for key in ("tokens_off", "bytes_per_step")}
if outcomes["experts"].state == "ran":
    results = outcomes["experts"].results
    experts.append({"label": "yours", "off": max(row["off"] for row in results), "bytes": sum(row["bytes"] for row in results)})
    yours["experts"] = experts[-1]
steps, (handed_bytes, most_by_one_bytes) = list_steps(args.card, args.gpu, args.batch), report.find_hand_over_bytes(**cut)
metrics = {
    **vars(args), "ranks": [{"rank": number, "host": host} for number, host in enumerate(hosts)], "gap": report.gap,
    "slices": slices, "handed": hand_overs, "moved": experts, "steps": steps, "placements": list_placements(),
    "tokens_off": max(row["tokens_off"] for row in delivered),
    "bytes_off": max(abs(row["bytes_per_step"] - row["by_formula_bytes"]) for row in delivered),
    "cache_off": max(abs(row["cache_share"] - 1 / min(row["slices"], KV_HEADS)) for row in delivered),
    "cache_share_of_most": delivered[-1]["cache_share"], "handed_off": hand_overs[0]["tokens_off"],
    "experts_off": experts[0]["off"], "heaviest_over_mean": find_heaviest(layer, size),
    "reduce_ms": 1e3 * sorted(reduce_s[2:])[5], "sums_bytes": report.sums_bytes, "pcie_speed_up": find_speed_up(steps, "pcie"),
    "errors": {name: "no error" if outcome.state == "ran" else outcome.text for name, outcome in outcomes.items()},
    "yours": yours, "choice_limit_bytes": report.sums_bytes + CHOICE_BYTES, "handed_limit_bytes": handed_bytes,
    "most_by_one_limit_bytes": most_by_one_bytes, "experts_limit_bytes": find_experts_bytes(layer, size),
}  # fmt: skip
say(f"\nAnswers of {args.tokens} tokens on slices of one model, compared with the answer of one process")
titles = {"label": "slices", "tokens_off": "tokens off", "calls_per_step": "calls a step", "bytes_per_step": "bytes a step"}
bench.say_table(slices, titles | {"by_formula_bytes": "formula", "cache_bytes": "cache of a rank"})
say(f"\nA prompt's keys from {args.senders} to {args.receivers} ranks, then {args.experts} experts on {size} ranks")
bench.say_table(
    hand_overs, {"label": "sent", "tokens_off": "tokens off", "bytes": "bytes", "most_by_one_bytes": "busiest sender"}
)
bench.say_table(experts, {"label": "sent", "off": "off", "bytes": "bytes"})
for name, outcome in outcomes.items():
    if outcome.state == "open":
        say(f"my_{name}.py is not written yet: a row of yours would follow. {outcome.text}")
    elif outcome.state == "failed":
        say(f"my_{name}.py: {outcome.text}")
path = bench.write_metrics("serving_ranks/1", world.device, world_size=size, seed=SEED, metrics=metrics)
bench.say_end(path, world.device)
dist.destroy_process_group()
