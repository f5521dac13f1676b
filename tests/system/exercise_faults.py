"""Faults of exercises: the words of a file that are replaced, the run, and the checks of the manifest that fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.parts import KERNELS, needs_module
from tests.system.exercising import list_earlier_throughputs, list_failed_checks, run_exercise


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A run with faults. `changes` and the other fields have the same meaning as in `run_exercise`.

    `red`: the checks that fail. These are all failing checks or, with `others`, only some of them.
    `words`: what is printed.
    `unknown`: metrics whose rows have None because the figure is refused, as (list of rows, key).
    """

    changes: Sequence[tuple[str, ...]] = ()
    red: set[str]
    others: bool = False
    words: str = ""
    unknown: tuple[str, str] | None = None
    ranks: int = 0
    solved: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    code: int = 0
    marks: Sequence[pytest.MarkDecorator] = (pytest.mark.slow,)


SMALL_SHARES = {"samples": "64", "batch_size": "16", "epochs": "2"}
SMALL_TRAINING = {"samples": "1024", "hidden": "64", "batch_size": "64", "steps": "10", "epochs": "2"}
SMALL_PICTURES = {"images": "256", "batch_size": "16", "width": "4", "epochs": "2"}
SMALL_GROUPS = {"micro_batch": "8", "hidden": "32", "steps": "5"}
SMALL_ROOFS = {"size": "512", "gemm_small": "8", "gemm_large": "256"}
SMALL_LAYOUTS = {
    "width": "16",
    "heads": "2",
    "length": "8",
    "batch_size": "8",
    "micro_batches": "2",
    "steps": "3",
    "layers": "2",
}
UNREAD = [
    ("ablation = repair_one_by_one()", 'ablation = [{"fault": 1, "alone_repaired": 1.0}]'),
    ('busy_before = write_profile(train_delivered, "profile-before.txt")', "busy_before = None"),
    ("busy = write_profile(train_delivered if broken", "busy = None and (train_delivered if broken"),
]
"""Changes that leave out the ablation and the profiles of 5.9, which take most of a run."""
needs_triton = needs_module("triton", installed=KERNELS)
needs_transformers = needs_module("transformers")
needs_psutil = needs_module("psutil")

FAULTS: Mapping[str, Fault] = {
    "0.1 model that sees the answer, and never steps": Fault(
        changes=[
            ("transformer.py", "attn_mask=future", "attn_mask=None"),
            ("training.py", "            optimizer.step()  # step: go", "            pass  # step: go"),
        ],
        red={"no-look-ahead", "more-than-counting"}, others=True,
        settings={"epochs": "1", "layers": "1", "compare_layers": "2", "hidden": "16"},
    ),
    "0.1 first weights too large": Fault(
        changes=[("transformer.py", "(part.weight, std=0.02)", "(part.weight, std=0.5)")],
        red={"begins-by-guessing"}, others=True,
        settings={"epochs": "1", "layers": "1", "compare_layers": "2", "hidden": "16"},
    ),
    "0.2 no sampler": Fault(
        changes=[("batch_size=args.batch_size, sampler=sampler", "batch_size=args.batch_size")],
        red={"nothing-twice"}, others=True, ranks=2, settings=SMALL_SHARES, marks=(),
    ),
    "0.2 one order, gradients that stay with their rank": Fault(
        changes=[
            ("    sampler.set_epoch(epoch)  #", "    pass  #"),
            ("loss_of(model, x, y).backward()", "loss_of(model.module, x, y).backward()"),
        ],
        red={"shuffled-anew", "gradients-equal", "gradients-mean", "parameters-equal", "same-samples-same-loss"},
        others=True, ranks=2, settings=SMALL_SHARES,
    ),
    "0.3 ranks counted round the nodes, wrong answer": Fault(
        changes=[("launcher.py", "node * args.nproc_per_node + local_rank  #", "local_rank * args.nnodes + node  #")],
        red={"rank-formula", "rank-range"}, settings={"question": "3", "answer": "0-1"},
    ),
    "1.1 wrong product, held copy, one call, impossible speed": Fault(
        changes=[
            ("cold = bench.time_each(lambda: torch.mm(x, y,", "cold = bench.time_each(lambda: torch.mm(x, x,"),
            ("tensors = [x, y, product]", "tensors = [x, y, product, a.clone()]"),
            ("at_least=args.repeats, flush=flush)", "flush=flush)[:1]"),
            ("    tflops = gpus.matmul_tflops(n, median)", "    tflops = gpus.matmul_tflops(n, 1e-9)"),
        ],
        red={"right", "allocated", "warm-calls", "possible"}, words="refused: 64: CPU", unknown=("rows", "gflop_per_s"),
        settings={"small": "64", "size": "128", "repeats": "3"}, marks=(),
    ),
    "1.2 impossible speed, too few tokens, no stream, wrong process": Fault(
        changes=[
            ("    speed = tokens / e2e\n", "    speed = 1e6 * tokens / e2e\n"),
            ("completions.py", '"max_tokens": max_tokens,', '"max_tokens": max_tokens - 1,'),
            ("completions.py", "    end = time.perf_counter()\n", "    end = arrivals[0] = time.perf_counter()\n"),
            ("    memory = engine.memory_bytes()\n", "    memory = 0\n"),
        ],
        red={"possible", "every-token", "streamed", "whose-memory"}, unknown=("rows", "tok_per_s"),
        settings={"max_tokens": "12"}, marks=(pytest.mark.slow, needs_transformers),
    ),
    "1.3 late samples, CPU passed off, impossible speed, other loads, broken exercise": Fault(
        changes=[
            ("telemetry.py", "phase, at = self.phase, self.seconds\n",
             "phase, at = self.phase, (time.sleep(0.6), self.seconds)[1]\n"),
            ("telemetry.py", '            source="cpu",\n', '            source="nvml",\n'),
            ("work.operations / work.seconds / 1e12\n", "1e3 * work.operations / work.seconds / 1e12\n"),
            ("loads.py", "    return Work(time.perf_counter() - start)\n",
             "    return Work(time.perf_counter() - start, 1e9)\n"),
            ("hello_gpu.py", "device, dtype, cores = bench.here()", "device, dtype, cores = bench.nowhere()"),
        ],
        red={"on-time", "labelled", "possible", "busy-without-work", "other-ran", "every-load"}, code=1,
        settings={"with": "1.1", "seconds": "0.4", "hz": "20"}, marks=(pytest.mark.slow, needs_psutil),
    ),
    "1.4 cache emptied too early, tensor held": Fault(
        changes=[
            ('    note("both deleted")\n', '    memory.empty_cache()\n    note("both deleted")\n'),
            ("    del first, second\n", "    del second\n"),
        ],
        red={"cache-keeps", "cache-emptied", "nothing-left"}, solved=True, settings={"size": "1000", "budget_mib": "64"},
        marks=(),
    ),
    "1.4 fix of a smaller table": Fault(
        files={"my_fix.py": "def sums_of_squares(load, rows):\n    return load(0, 4096).square().sum(dim=0)\n"},
        red={"fix-whole", "fix-right"}, settings={"size": "1000", "budget_mib": "64"},
    ),
    "1.4 fix that raises": Fault(
        files={"my_fix.py": "def sums_of_squares(load, rows):\n    return 1 / 0\n"},
        red={"fix-runs"}, settings={"size": "1000", "budget_mib": "64"},
    ),
    "3.1 rank with a wrong value": Fault(
        changes=[("torch.full((args.elements,), float(rank + 1)", "torch.full((args.elements,), float(rank * 2 + 1)")],
        red={"allreduce-exact", "sum"}, others=True, words="WRONG", ranks=2, settings={"elements": "100"}, marks=(),
    ),
    "3.2 gradients that are not averaged": Fault(
        changes=[
            ("model, own_share = build(parallel=True)", "model, own_share = build(parallel=False)"),
            ("whole_loss(model.module)\nfor", "whole_loss(model)\nfor"),
            ("whole_loss(model.module), flat", "whole_loss(model), flat"),
        ],
        red={"gradients-equal", "gradients-right", "parameters-equal"}, others=True, ranks=2, settings=SMALL_TRAINING,
    ),
    "3.2 one rank with other weights": Fault(
        changes=[("loss_after, weights =",
                  "if rank == 1:\n    next(model.parameters()).data[0, 0] += 1e-6\nloss_after, weights =")],
        red={"parameters-equal"}, ranks=2, settings=SMALL_TRAINING,
    ),
    "3.2 shared samples, one order": Fault(
        changes=[
            ("num_replicas=size, rank=rank,", "num_replicas=size, rank=0,"),
            ("    sampler.set_epoch(epoch)  #", "    pass  #"),
        ],
        red={"shares-disjoint", "shuffled-anew"}, others=True, ranks=2, settings=SMALL_TRAINING, marks=(),
    ),
    "3.2 loss that is no number": Fault(
        changes=[("lr=learning_rate()", "lr=1e30")],
        red={"loss-fell", "parameters-equal"}, others=True, ranks=2, settings=SMALL_TRAINING,
    ),
    "3.3 wrong values of each collective": Fault(
        changes=[
            ("dist.broadcast(contribution, src=0)", "dist.broadcast(contribution, src=1)"),
            ("lambda: dist.all_reduce(contribution), contribution, contribution, total",
             "lambda: (dist.all_reduce(contribution), dist.all_reduce(contribution)), contribution, contribution, total"),
            ("gather(gathered, own_share)", "gather(gathered, own_share.flip(0))"),
            ("scatter(buffer, contribution)", "scatter(buffer, contribution.roll(1))"),
        ],
        red={"values-right"}, ranks=2, settings={"max_bytes": "1024"}, marks=(),
    ),
    "3.4 one share for all, wrong labels": Fault(
        changes=[("rank=worker", "rank=0"), ("images[places], labels[places]", "images[places], labels[places] * 0")],
        red={"same-training", "learned", "better-than-guessing"}, others=True, ranks=2, settings=SMALL_PICTURES,
    ),
    "3.4 each rank on its own": Fault(
        changes=[
            ("generate(image_count, SEED)", "generate(image_count, rank)"),
            ('network if case == "1 worker" else', "network if case else"),
        ],
        red={"same-data", "parameters-equal"}, others=True, ranks=2, settings=SMALL_PICTURES,
    ),
    "3.5 not divided by k": Fault(
        changes=[("/ divisor).backward()", ").backward()")],
        red={"gradients-equal", "same-weights"}, ranks=2, settings=SMALL_GROUPS,
    ),
    "3.5 ranks that do not average": Fault(
        changes=[("cross_entropy(model(x), y)", "cross_entropy(model.module(x), y)")],
        red={"ranks-agree"}, others=True, ranks=2, settings=SMALL_GROUPS,
    ),
    "3.5 groups divided by k, without no_sync": Fault(
        changes=[
            ("my_group.py", ', reduction="sum") * weight', ") / len(pieces)"),
            ("my_group.py", "number < len(pieces)", "number < 0"),
        ],
        red={"your-last-group", "calls-saved", "bytes-saved"}, ranks=2, solved=True, settings=SMALL_GROUPS,
    ),
    "3.6 unequal shares, wrong gradient sent back": Fault(
        changes=[
            ("args.layers * r // size, args.layers * (r + 1) // size", "7 * (r > 0), 7 if r == 0 else args.layers"),
            ("dist.send(received.grad, rank - 1)", "dist.send(received.grad * 1.01, rank - 1)"),
        ],
        red={"bubble-formula", "gradients-right"}, ranks=2,
        settings={"hidden": "96", "batch_size": "256", "steps": "3", "layers": "8"},
    ),
    "3.7 workers that train apart, or less": Fault(
        changes=[
            ("group = dist.new_group(range(n)) if n > 1 else None",
             "group = [dist.new_group([r]) for r in range(size)][rank]"),
            ("trained += len(y)", "trained += len(y) - rank"),
        ],
        red={"gradients-right", "one-model", "no-sample-missing"}, ranks=2,
        settings={"hidden": "32", "batch_size": "24", "steps": "5", "depth": "1"}, marks=(),
    ),
    "3.8 PowerSGD that never begins": Fault(
        changes=[(", start_powerSGD_iter=args.start_iteration", "")],
        red={"bytes-by-formula"}, others=True, ranks=2,
        settings={"hidden": "64", "batch_size": "32", "steps": "20", "hook": "powersgd-1"},
    ),
    "3.9 sum for an average, half a plan, spread copies": Fault(
        changes=[
            ("bucket /= copies.size()", "bucket /= 1"),
            ('    "mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel(),\n', ""),
            ("hosts = world.gather(bench.node_label())", 'hosts = world.gather(f"node{rank % 2}")'),
        ],
        red={"loss-equal", "parameters-right", "bytes-by-formula", "messages-by-formula", "copy-on-one-node"}, others=True,
        ranks=4, settings={"width": "32", "layers": "1", "length": "8", "batch_size": "8", "steps": "4"},
    ),
    "4.1 sparse figure, guessed GPU": Fault(
        changes=[
            ("gpus.json", '"fp32": 30.3, "tf32": 60, "fp16": 121,', '"fp32": 30.3, "tf32": 60, "fp16": 242,'),
            ("gpus.py", "if name in map(_normal, gpu.names)", "if any(name in _normal(text) for text in gpu.names)"),
        ],
        red={"formula", "never-guessed"},
    ),
    "4.2 wrong product, impossible speed, sizes and long runs left out": Fault(
        changes=[
            ("matmuls.py", "lambda: torch.mm(x, y, out=out)", "lambda: torch.mm(x, x, out=out)"),
            ("    tflops, max_tflops = gpus.matmul_tflops(n, call_s),", "    tflops, max_tflops = 1e6,"),
            ("    for n in [*sizes, sizes[-1] - 1]:", "    for n in [sizes[0], sizes[-1] - 1]:"),
            ('for dtype in dict.fromkeys(row["dtype"] for row in rows) if', "for dtype in () if"),
        ],
        red={"right", "possible", "every-pair", "long-runs"}, unknown=("rows", "tflops"),
        settings={"sizes": "48,96", "dtypes": "float32,float64,float16", "sustained_s": "0.1"}, marks=(),
    ),
    "4.3 prompts asked twice, impossible speed, unequal work": Fault(
        changes=[
            ("    used_prompts.update(map(tuple, new_prompts))\n",
             "    new_prompts = [[5] * args.input_len] * count\n    used_prompts.update(map(tuple, new_prompts))\n"),
            ("sum(answer.tokens for answer in round_answers) / wall",
             "1e4 * sum(answer.tokens for answer in round_answers) / wall"),
            ("completions.py", '"max_tokens": max_tokens,', '"max_tokens": max(1, max_tokens - 2),'),
        ],
        red={"nothing-kept", "possible", "equal-work"}, others=True, words="refused: 3 at a time",
        unknown=("rows", "output_tok_per_s"),
        settings={"batch_sizes": "1,3", "input_len": "8", "output_len": "6", "repeats": "2"},
        marks=(pytest.mark.slow, needs_transformers),
    ),
    "4.4 minutes for hours, another GPU's speed, squared ratio": Fault(
        changes=[
            ("costs.py", "tok_per_s * 3600 * util", "tok_per_s * 60 * util"),
            ('if run["gpu"] == gpu), None)', 'if run["gpu"] in (gpu, "T4")), None)'),
            ('and throughput(row["gpu"]) is None for', 'and row["gpu"] not in {each["gpu"] for each in of_model} for'),
            ("costs.py", "    return price / other_price\n", "    return price**2 / other_price\n"),
        ],
        red={"formula", "price-ratio", "nothing-invented"}, files=list_earlier_throughputs(), settings={"model": "gpt2"},
        marks=(),
    ),
    "5.1 syntax": Fault(
        changes=[("my_kernels.cu", "#include <cuda_runtime.h>", "int x = ;")],
        red={"compiles"}, words="my_kernels.cu:8: error: ",
    ),
    "5.1 transpose that writes columns": Fault(
        changes=[("my_warps.cu",
                  '  OPEN("transpose: how can a warp write a row of out after it has read a row of in?");\n', "")],
        red={"transpose-coalesced"}, words="transpose (yours): right; 4 sectors a load, 32 sectors a store",
    ),
    "5.2 loop that stops": Fault(
        changes=[("my_loop.py", "    optimizer = torch.optim.AdamW(", "    optimizer = torch.optim.AdmaW(")],
        red={"loop-runs", "runs-anywhere"}, words="my_loop.py, line 36", settings={"steps": "10", "hidden": "64"}, marks=(),
    ),
    "5.6 kernel that only the interpreter takes": Fault(
        changes=[("my_norm.py", "    y = centred * tl.rsqrt(variance + eps) * weight + bias\n",
                  "    y = centred * tl.rsqrt(variance + eps) * weight + bias\n    for _ in {1: 1}:\n        y += 0\n")],
        red={"right", "compiles"}, words="for _ in {1: 1}",
        settings={"rows": "16", "columns": "200,256", "archs": "sm_89"}, marks=(pytest.mark.slow, needs_triton),
    ),
    "5.7 operations counted too often, stencil in half precision, no words": Fault(
        changes=[
            ("roof_kernels.py", "2 * n**3, 12 * n * n", "40 * n**3, 12 * n * n"),
            ("my_stencil.py", "change = c * (vertical + horizontal)", "change = (c * (vertical + horizontal)).half()"),
            ("my_limits.py", 'raise NotImplementedError("find_limit: ', 'return ("'),
        ],
        red={"possible", "stencil-right", "traces-right"}, others=True, settings=SMALL_ROOFS,
    ),
    "5.7 step that raises": Fault(
        changes=[("my_stencil.py", "centre + change", "centre + changed")], red={"step-runs"}, settings=SMALL_ROOFS,
    ),
    "5.8 circular filter": Fault(
        changes=[("my_filter.py", "length = samples + points - 1  #", "length = samples  #")],
        red={"filter-right", "finds"}, others=True, settings={"signals": "64", "batch_sizes": "1,16"},
    ),
    "5.8 filter that changes its input": Fault(
        changes=[("my_filter.py", "return torch.stack(scores)", "signals.zero_()\n    return torch.stack(scores)")],
        red={"filter-runs"}, others=True, settings={"signals": "64", "batch_sizes": "1,16"},
    ),
    "5.9 fewer samples": Fault(
        changes=[
            *UNREAD, ("my_training.py", "out = model(x[places])", "places = places[:4]\n            out = model(x[places])"),
        ],
        red={"same-losses", "same-weights", "every-sample"}, others=True, solved=True,
        settings={"samples": "32", "rounds": "1"},
    ),
    "5.9 training without the model": Fault(
        changes=[*UNREAD, ("my_training.py", "out = model(x[places])", "out = model.forward(x[places])")],
        red={"training-runs"}, others=True, words="called the model 0 times", solved=True,
        settings={"samples": "32", "rounds": "1"},
    ),
    "5.10 product that a GPU would round": Fault(
        changes=[
            ("my_attention.py", 'tl.trans(k), input_precision="ieee")', "tl.trans(k))"),
            ("my_attention.py", ', v, input_precision="ieee")', ", v)"),
        ],
        red={"no-tf32"}, solved=True,
        settings={"lengths": "40", "heads": "1", "d": "32", "block_q": "32", "block_k": "32", "archs": "sm_89"},
        marks=(pytest.mark.slow, needs_triton),
    ),
    "6.2 weights that stay whole at stage 3": Fault(
        changes=[("free_after_forward=stage == 3)", "free_after_forward=False)")],
        red={"torch-memory", "torch-traffic", "stage-3-smallest", "count-stages", "count-stages-sent"}, others=True,
        ranks=2, solved=True, settings={"ranks_per_node": "1", "layers": "1", "steps": "4", "virtual_ranks": "0"},
    ),
    "6.3 half a plan": Fault(
        changes=[("mesh_model.py", '    "mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel(),\n', "")],
        red={"weights-by-formula", "bytes-by-formula"},
        settings=SMALL_LAYOUTS | {"layouts": "1x1x2,2x1x1,1x2x1", "ranks_per_node": "2"}, marks=(),
    ),
    "6.3 layer twice": Fault(
        changes=[("mesh_model.py", "self.layers * stage // stages, ", "max(0, self.layers * stage // stages - 1), ")],
        red={"all-layers", "equal", "weights-equal"},
        settings=SMALL_LAYOUTS | {"layouts": "1x2x1,2x1x1,1x1x2", "ranks_per_node": "2"},
    ),
    "B.3 tracer that does not compile": Fault(
        changes=[("my_preload.c", 'add(1, "calls cudaFree");', 'add(1, "allocations")')],
        red={"runs"}, words="cc cannot compile my_preload.c", settings={"tracer": "preload"},
    ),
}  # fmt: skip


def check_fault(name: str, folder: Path) -> None:
    """Run the exercise with a fault, by the fault's name, and examine its checks."""
    fault = FAULTS[name]
    run = run_exercise(
        name.split(maxsplit=1)[0], folder, *fault.changes,
        ranks=fault.ranks, solved=fault.solved, files=fault.files, **fault.settings,
    )  # fmt: skip
    assert run.code == fault.code, run.output
    failures = list_failed_checks(run)
    assert fault.red <= failures if fault.others else fault.red == failures, (failures, run.output)
    assert fault.words in run.output
    if fault.unknown:
        rows, key = fault.unknown
        assert {row[key] for row in run.metrics[rows]} == {None}, "a refused figure is not shown"
