"""Compute the memory, the bytes sent and the time of a plan for a large model, by published formulas, and list all valid plans.

A plan says how the ranks are divided (dp copies x pp stages x tp slices), what ZeRO shards, what is recomputed, and into how
many micro-batches a step is cut. Units: bytes and seconds, GB = 10^9 bytes. Nothing here is measured.

Sources of the formulas
  activations    Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", tables 1 and 2
  ZeRO           Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", sections 3, 7
  bubble, FLOPs  Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM"
  checkpoints    Young 1974, "A first order approximation to the optimum checkpoint interval"
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from targets import Cluster, Shape, Work

PRECISIONS, ZERO = ("bf16", "fp16", "fp32"), (0, 1, 2, 3)
SUMS = {"none": 4.0, "attention": 4.0, "every-2": 4.75, "all": 5.5}  # of a layer on average, which its next product waits for
CHECKPOINTING = tuple(SUMS)
GATHERED_AGAIN = 1.0  # two all_gathers of a layer, as many bytes as a sum, which are sent during a product of backward
STATES = {"bf16": (2, 2, 12), "fp16": (2, 2, 12), "fp32": (4, 4, 8)}  # bytes per parameter: weights, gradients, optimizer
SAVED_BYTES = 12  # of a checkpoint, for each parameter: weights and two moments, in 32 bits
STORAGE_GB_PER_S = 1.0  # that each node writes: an assumption; 6.4 measures it
GPU_HOURS_A_FAILURE = 50_000.0  # Llama 3 (2024): 419 unexpected interruptions of 16,384 GPUs in 54 days


@dataclass(frozen=True)
class Plan:
    """The division of the work among the GPUs. Each copy of the model cuts its share of a step into `micro_batches` pieces."""

    dp: int
    pp: int
    tp: int
    zero: int
    checkpointing: str
    micro_batches: int
    precision: str
    save_every: int = 0

    def sequences(self, work: Work) -> float:
        """Return the sequences of one micro-batch. The number is not whole if the batch cannot be divided in this way."""
        return work.batch / (self.dp * self.micro_batches)


# --- memory --------------------------------------------------------------------------------------------------------------
def activation_bytes(shape: Shape, length: int, tp: int, checkpointing: str, element: int = 2) -> tuple[float, float]:
    """Return the bytes of one layer for each token of a micro-batch: those kept for backward, and those needed only during
    recomputation.

    If layers differ, the first number is their mean.

    The terms are those of Korthikanti et al.: outside the slices (10 h in 16 bits), inside them (24 h), and the attention
    matrices (5 a s). tp divides all of them: the inside by heads and columns, the outside by tokens (sequence parallelism).
    They are counted here number by number, so that 32 bits and a gated MLP are covered.
    """
    h, masks = shape.width, 0 if shape.gated else 1
    shared_bytes = (4 * element + 2 * masks) * h
    block_bytes = element * ((2 + 2 * shape.kv_heads / shape.heads) * h + (4 if shape.gated else 2) * shape.inner)
    attention = ((1 + masks) * element + masks) * shape.heads * length
    everything, inputs = (shared_bytes + block_bytes + attention) / tp, element * h / tp
    return {
        "none": (everything, 0.0),
        "attention": ((shared_bytes + block_bytes) / tp, attention / tp),
        "every-2": ((everything + inputs) / 2, everything - inputs),
        "all": (inputs, everything - inputs),
    }[checkpointing]


def memory(work: Work, plan: Plan) -> dict[str, float]:
    """Return the bytes on the fullest GPU: weights, gradients, optimizer, activations, and their total.

    The fullest GPU is in the first stage, which has the most micro-batches in flight, or in the last one, which has the scores.
    """
    return max((_sum_stage(work, plan, stage) for stage in {0, plan.pp - 1}), key=lambda parts: parts["total"])


def _sum_stage(work: Work, plan: Plan, stage: int) -> dict[str, float]:
    numbers, sizes = stage_parameters(work, plan, stage), STATES[plan.precision]
    shards = [plan.dp if plan.zero >= minimum else 1 for minimum in (3, 2, 1)]
    parts = {
        name: numbers * size / shard
        for name, size, shard in zip(("weights", "gradients", "optimizer"), sizes, shards, strict=True)
    }
    parts["activations"] = _activations(work, plan, stage)
    return parts | {"total": sum(parts.values())}


def stage_parameters(work: Work, plan: Plan, stage: int) -> float:
    """Return the parameters that one GPU of a stage holds before ZeRO.

    These are its layers, and the parameters before or after all layers, both divided by tp.
    """
    shape = work.shape
    numbers = shape.layers / plan.pp * shape.layer_parameters
    numbers += shape.first_parameters(work.length) if stage == 0 else 0
    numbers += shape.last_parameters(is_only_stage=plan.pp == 1) if stage == plan.pp - 1 else 0
    return numbers / plan.tp


def _activations(work: Work, plan: Plan, stage: int) -> float:
    """Return the activations under 1F1B.

    Before it ends one micro-batch, the first stage begins as many as there are stages. The last stage begins one.
    """
    element = STATES[plan.precision][0]
    lasting, recomputed = activation_bytes(work.shape, work.length, plan.tp, plan.checkpointing, element)
    tokens, in_flight = plan.sequences(work) * work.length, min(plan.micro_batches, plan.pp - stage)
    total = tokens * (in_flight * lasting * work.shape.layers / plan.pp + recomputed)
    if stage == plan.pp - 1:  # the scores in 32 bits, and what goes into the last norm and the last product
        total += tokens * 4 * (work.shape.width + work.shape.vocabulary) / plan.tp
    return total


# --- bytes sent ------------------------------------------------------------------------------------------------------------
def sent_bytes(work: Work, plan: Plan) -> dict[str, float]:
    """Return the bytes that the busiest GPU sends in a step, by dimension.

    An all_reduce among n sends 2 (n - 1) / n of its size. A reduce_scatter or an all_gather sends half of that.
    tp: a sum is a reduce_scatter and an all_gather. A layer has two sums in forward and two in backward. Recomputing it adds
    one and a half, as torch stops before the last reduce_scatter, which no gradient needs. Backward also gathers the inputs of
    the attention and of the MLP again.
    pp: a GPU sends its share of the tokens to the next stage.
    dp: ZeRO 2 and 3 send for every micro-batch.
    """
    element = STATES[plan.precision][0]
    activation = plan.sequences(work) * work.length * work.shape.width * element
    sums = SUMS[plan.checkpointing] + GATHERED_AGAIN
    tp = 2 * (plan.tp - 1) / plan.tp * activation * sums * work.shape.layers / plan.pp * plan.micro_batches
    neighbours = min(2, plan.pp - 1)
    weights = max(stage_parameters(work, plan, stage) for stage in {0, plan.pp - 1}) * element
    times = {0: 2, 1: 2, 2: plan.micro_batches + 1, 3: 3 * plan.micro_batches}[plan.zero]
    dp = (plan.dp - 1) / plan.dp * weights * times
    return {"tp": tp, "pp": neighbours * activation / plan.tp * plan.micro_batches, "dp": dp}


def bubble(plan: Plan) -> float:
    """Return the share of a step in which a stage waits for micro-batches: (p - 1) / (m + p - 1)."""
    return (plan.pp - 1) / (plan.micro_batches + plan.pp - 1)


# --- time ------------------------------------------------------------------------------------------------------------------
def hardware_flops(work: Work, plan: Plan) -> float:
    """Return the operations of a step on all GPUs, including recomputation (of all layers, of every second one, or of
    attention)."""
    tokens, shape = work.batch * work.length, work.shape
    attention = 4.0 * shape.layers * shape.width * work.length
    layers = 2.0 * shape.layers * shape.layer_parameters + attention
    recomputed = {"none": 0.0, "attention": attention, "every-2": layers / 2, "all": layers}[plan.checkpointing]
    return shape.model_flops(tokens, work.length) + tokens * recomputed


def step_seconds(work: Work, plan: Plan) -> dict[str, float]:
    """Return a lower bound for the time of a step. Raises ValueError if the GPU lacks the precision.

    Every GPU computes at the peak of its data sheet, and every link has its full speed. Bytes that may be sent during computing
    cost nothing.

    The sums of tp cannot overlap with computing, because the next product needs them. The time of the sums and the bubble are
    added. The bytes of pp and dp, and those that backward gathers again, can overlap. But the step takes at least as long as
    the bytes of pp and dp take on their link.
    """
    peak, by_kind = work.cluster.flops(plan.precision), sent_bytes(work, plan)
    if peak is None:
        raise ValueError(f"no {plan.precision} on {work.cluster.gpu.gpu}")
    compute = hardware_flops(work, plan) / (work.cluster.size * peak)
    waiting = SUMS[plan.checkpointing] / (SUMS[plan.checkpointing] + GATHERED_AGAIN)
    sums = waiting * by_kind["tp"] / (work.cluster.inside * 1e9)
    pipeline = (compute + sums) / (1 - bubble(plan))
    links = _link_seconds(work.cluster, plan, by_kind)
    return {"compute": compute, "sums": sums, "pipeline": pipeline, "links": links, "step": max(pipeline, links)}


def _link_seconds(cluster: Cluster, plan: Plan, by_kind: dict[str, float]) -> float:
    """Return the seconds of pp and dp on their links, with tp varying fastest, then pp, then dp.

    If a node holds several GPUs of one dp group, the group's ring leaves the node once, with the network shares of all of them.
    """
    of_pipeline = cluster.inside if plan.tp * plan.pp <= cluster.per_node else cluster.between
    copies_on_node = max(1, cluster.per_node // (plan.tp * plan.pp))
    of_copies = cluster.inside if cluster.nodes == 1 else min(cluster.inside, cluster.between * copies_on_node)
    return (by_kind["pp"] / of_pipeline + by_kind["dp"] / of_copies) / 1e9


def mfu_percent(work: Work, plan: Plan, seconds: float) -> float:
    """Return model FLOPs in percent of the data sheets' FLOPs in that time. Recomputation does not count."""
    peak = work.cluster.flops(plan.precision) or math.inf
    return 100 * work.shape.model_flops(work.batch * work.length, work.length) / (seconds * work.cluster.size * peak)


def young_seconds(work: Work) -> float:
    """Return the time between checkpoints that loses the least.

    The formula is sqrt(2 x seconds of a checkpoint x seconds between failures).
    """
    saving = work.shape.parameters(work.length) * SAVED_BYTES / (work.cluster.nodes * STORAGE_GB_PER_S * 1e9)
    return math.sqrt(2 * saving * GPU_HOURS_A_FAILURE * 3600 / work.cluster.size)


def save_interval_times(work: Work, plan: Plan) -> tuple[float, float]:
    """Return the time of `save_every` steps as a multiple of Young's interval, and that interval in seconds.

    Each step counts with its lower bound.
    """
    young = young_seconds(work)
    return plan.save_every * step_seconds(work, plan)["step"] / young, young


# --- rules -----------------------------------------------------------------------------------------------------------------
def find_problems(work: Work, plan: Plan) -> dict[str, str]:
    """Return the rules that a plan breaks, including memory, by name, each with its numbers. If the plan can run, none is
    returned."""
    shape, cluster = work.shape, work.cluster
    ranks, total = plan.dp * plan.pp * plan.tp, memory(work, plan)["total"] / 1e9
    rules = {
        "product": (ranks == cluster.size, f"dp x pp x tp is {ranks}, but {cluster.name} has {cluster.size} GPUs"),
        "heads": (shape.kv_heads % plan.tp == 0, f"{shape.kv_heads} heads of keys cannot be cut into {plan.tp} slices"),
        "tp-over-nodes": (cluster.per_node % plan.tp == 0, f"{plan.tp} slices do not fit into nodes of {cluster.per_node}"),
        "layers": (shape.layers % plan.pp == 0, f"{shape.layers} layers cannot be divided into {plan.pp} equal stages"),
        "few-micro-batches": (
            plan.micro_batches >= plan.pp, f"{plan.micro_batches} micro-batches do not fill {plan.pp} stages"
        ),
        "batch": (
            work.batch % (plan.dp * plan.micro_batches) == 0,
            f"{work.batch} sequences cannot be split among {plan.dp} copies with {plan.micro_batches} micro-batches",
        ),
        "precision": (cluster.flops(plan.precision) is not None, f"a {cluster.gpu.gpu} cannot compute in {plan.precision}"),
        "zero-of-one": (plan.zero == 0 or plan.dp > 1, f"ZeRO {plan.zero} shards over the copies, but dp is {plan.dp}"),
        "does-not-fit": (
            total <= cluster.usable_bytes / 1e9,
            f"{total:.1f} GB on the fullest GPU, but only {cluster.usable_bytes / 1e9:.1f} of its "
            f"{cluster.gpu.memory_gb:g} GB may be filled",
        ),
    }  # fmt: skip
    return {name: reason for name, (holds, reason) in rules.items() if not holds}


def list_valid_plans(work: Work) -> list[tuple[float, Plan]]:
    """Return every plan in 16 bits without a problem, with the lower bound of its step in seconds, the fastest first.

    The plans use bf16 if the GPU has it, else fp16.
    """
    plans = [plan for plan in _list_plans(work) if not find_problems(work, plan)]
    return sorted(((step_seconds(work, plan)["step"], plan) for plan in plans), key=lambda pair: pair[0])


def rank_percent(valid: list[tuple[float, Plan]], seconds: float) -> float:
    """Return the share of the valid plans with a faster step: 0 for the fastest. Raises ZeroDivisionError without a plan."""
    return 100 * sum(step < seconds * (1 - 1e-9) for step, _ in valid) / len(valid)


def least_memory(work: Work) -> float:
    """Return the bytes on the fullest GPU of the plan that needs the least, among plans that break no other rule."""
    plans = [plan for plan in _list_plans(work) if find_problems(work, plan).keys() <= {"does-not-fit"}]
    return min(memory(work, plan)["total"] for plan in plans)


def _list_plans(work: Work) -> Iterator[Plan]:
    short = "bf16" if work.cluster.flops("bf16") else "fp16"
    for tp in _divisors(work.cluster.per_node):
        for pp in _divisors(work.cluster.size // tp):
            dp = work.cluster.size // (tp * pp)
            for m in _divisors(work.batch // dp) if work.batch % dp == 0 else ():
                for zero in ZERO if dp > 1 else (0,):
                    for checkpointing in CHECKPOINTING:
                        yield Plan(dp, pp, tp, zero, checkpointing, m, short)


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
