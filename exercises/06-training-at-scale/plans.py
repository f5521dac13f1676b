"""Compute the memory, the bytes sent and the time of a plan for a large model, by published formulas, and list all valid plans.

A plan says how the ranks are divided (dp copies x pp stages x tp slices), what ZeRO shards, what is recomputed, and into how
many micro-batches a step is cut. Units: bytes and seconds, GB = 10^9 bytes. Nothing here is measured.

Sources of the formulas
  activations    Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", tables 1 and 2
  ZeRO           Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", sections 3, 7
  bubble, FLOPs  Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM"
  context        Liu et al. 2023, "Ring Attention with Blockwise Transformers for Near-Infinite Context"
  zero bubble    Qi et al. 2024, "Zero Bubble Pipeline Parallelism", ZB-H1; interleaved: Narayanan et al. 2021
  checkpoints    Young 1974, "A first order approximation to the optimum checkpoint interval"
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from targets import Cluster, Shape, Work

PRECISIONS, ZERO = ("bf16", "fp16", "fp32"), (0, 1, 2, 3)
SCHEDULES = ("1f1b", "interleaved", "zero-bubble")
CHUNKS = 2  # of layers that an interleaved stage holds
SUMS = {"none": 4.0, "attention": 4.0, "every-2": 4.75, "all": 5.5}  # of a layer on average, which its next product waits for
CHECKPOINTING = tuple(SUMS)
GATHERED_AGAIN = 1.0  # two all_gathers of a layer, as many bytes as a sum, which are sent during a product of backward
STATES = {"bf16": (2, 2, 12), "fp16": (2, 2, 12), "fp32": (4, 4, 8)}  # bytes per parameter: weights, gradients, optimizer
SAVED_BYTES = 12  # of a checkpoint, for each parameter: weights and two moments, in 32 bits
STORAGE_GB_PER_S = 1.0  # that each node writes: an assumption; 6.4 measures it
GPU_HOURS_A_FAILURE = 50_000.0  # Llama 3 (2024): 419 unexpected interruptions of 16,384 GPUs in 54 days


@dataclass(frozen=True)
class Plan:
    """The division of the work among the GPUs. Each copy of the model cuts its share of a step into `micro_batches` pieces.

    `cp` ranks share each sequence (context parallelism, with equal work on each). `ep` of the dp x cp
    ranks with the same layers hold different experts (expert parallelism). `schedule` is the pipeline's schedule.
    """

    dp: int
    pp: int
    tp: int
    zero: int
    checkpointing: str
    micro_batches: int
    precision: str
    save_every: int = 0
    cp: int = 1
    ep: int = 1
    schedule: str = "1f1b"

    @property
    def ranks(self) -> int:
        """Return the number of GPUs that the plan takes."""
        return self.dp * self.cp * self.pp * self.tp

    @property
    def is_extended(self) -> bool:
        """Return whether the plan uses what module 9 adds: context or expert parallelism, or a schedule other than 1F1B."""
        return (self.cp, self.ep, self.schedule) != (1, 1, "1f1b")

    def sequences(self, work: Work) -> float:
        """Return the sequences of one micro-batch. The number is not whole if the batch cannot be divided in this way."""
        return work.batch / (self.dp * self.micro_batches)


# --- memory --------------------------------------------------------------------------------------------------------------
def activation_bytes(shape: Shape, length: int, tp: int, checkpointing: str, element: int = 2) -> tuple[float, float]:
    """Return the bytes of one layer for each token of a micro-batch: those kept for backward, and those needed only during
    recomputation.

    If layers differ, the first number is their mean.

    The terms follow Korthikanti et al., where h is the width, a the number of heads and s the length: outside the slices
    (10 h in 16 bits), inside them (24 h), and the attention matrices (5 a s). tp divides all of them: the inside by heads and
    columns, the outside by tokens (sequence parallelism). They are counted here number by number, so that 32 bits and a gated
    MLP are covered. With experts, a token passes through `top` MLPs.
    """
    h, masks, mlps = shape.width, 0 if shape.gated else 1, max(1, shape.top)
    shared_bytes = (4 * element + 2 * masks) * h
    block_bytes = element * ((2 + 2 * shape.kv_heads / shape.heads) * h + mlps * (4 if shape.gated else 2) * shape.inner)
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
    numbers = _divide_parameters(work, plan, stage)
    parts = {
        name: sum(count * size / (holders if plan.zero >= minimum else 1) for count, holders in numbers)
        for name, size, minimum in zip(("weights", "gradients", "optimizer"), STATES[plan.precision], (3, 2, 1), strict=True)
    }
    parts["activations"] = _activations(work, plan, stage)
    return parts | {"total": sum(parts.values())}


def stage_parameters(work: Work, plan: Plan, stage: int) -> float:
    """Return the parameters that one GPU of a stage holds before ZeRO.

    These are its layers, and the parameters before or after all layers, both divided by tp, and the experts by ep as well.
    """
    return sum(count for count, _ in _divide_parameters(work, plan, stage))


def _divide_parameters(work: Work, plan: Plan, stage: int) -> tuple[tuple[float, int], tuple[float, int]]:
    """Return two pairs, one for parameters outside the experts and one for those in them.

    Each pair has the parameters that a GPU holds before ZeRO, and how many GPUs hold the same ones. All dp x cp ranks with
    the same layers hold the same parameters, but only one in ep of them the same experts.
    """
    shape, experts = work.shape, work.shape.layers / plan.pp * work.shape.expert_parameters
    numbers = shape.layers / plan.pp * (shape.layer_parameters - shape.expert_parameters)
    numbers += shape.first_parameters(work.length) if stage == 0 else 0
    numbers += shape.last_parameters(is_only_stage=plan.pp == 1) if stage == plan.pp - 1 else 0
    holders = plan.dp * plan.cp
    return (numbers / plan.tp, holders), (experts / (plan.tp * plan.ep), max(1, holders // plan.ep))


def _activations(work: Work, plan: Plan, stage: int) -> float:
    """Return the activations under the plan's schedule.

    Before it ends one micro-batch, the first stage of 1F1B begins as many as there are stages. The last stage begins one.
    Interleaved stages begin (p - 1) / v micro-batches more. With zero bubble, each stage keeps as many as the first one of
    1F1B, because the gradients of its weights wait.
    """
    element = STATES[plan.precision][0]
    lasting, recomputed = activation_bytes(work.shape, work.length, plan.tp, plan.checkpointing, element)
    begun = {"1f1b": plan.pp - stage, "interleaved": plan.pp - stage + (plan.pp - 1) / CHUNKS, "zero-bubble": plan.pp}
    tokens, in_flight = plan.sequences(work) * work.length / plan.cp, min(plan.micro_batches, begun[plan.schedule])
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
    dp: ZeRO 2 and 3 send for every micro-batch. The ranks of a sequence sum their gradients as copies do.
    cp: in forward, keys and values make cp - 1 hops; in backward as many again. Their gradients make cp
    hops, which bring them to their owners.
    ep: each token goes to `top` experts and comes back, and so do the gradients: four exchanges in each layer.
    """
    shape, element = work.shape, STATES[plan.precision][0]
    activation = plan.sequences(work) * work.length / plan.cp * shape.width * element
    sums = SUMS[plan.checkpointing] + GATHERED_AGAIN
    tp = 2 * (plan.tp - 1) / plan.tp * activation * sums * work.shape.layers / plan.pp * plan.micro_batches
    neighbours = min(2, plan.pp - 1) * (CHUNKS if plan.schedule == "interleaved" else 1)
    times = {0: 2, 1: 2, 2: plan.micro_batches + 1, 3: 3 * plan.micro_batches}[plan.zero]
    dp = max(
        sum((holders - 1) / holders * count for count, holders in _divide_parameters(work, plan, stage)) * element * times
        for stage in {0, plan.pp - 1}
    )
    passes = shape.layers / plan.pp * plan.micro_batches  # of a micro-batch through a layer
    hops = 4 * (plan.cp - 1) + 2 * plan.cp if plan.cp > 1 else 0  # of keys or of values, or of their gradients
    cp = hops * activation * shape.kv_heads / shape.heads / plan.tp * passes
    ep = 4 * shape.top * (plan.ep - 1) / plan.ep * activation / plan.tp * passes
    return {"tp": tp, "pp": neighbours * activation / plan.tp * plan.micro_batches, "dp": dp, "cp": cp, "ep": ep}


def bubble(plan: Plan) -> float:
    """Return the share of a step in which a stage waits for micro-batches: q / (m + q), with q = p - 1 for 1F1B.

    p is the number of stages, m that of micro-batches. Interleaved stages of v chunks wait for q = (p - 1) / v. With ZB-H1, a
    stage waits for (p - 1) (F + I - W), with F for forward, I for the gradients of the inputs, and W for those of the weights.
    These three count as equally long here, so that q = (p - 1) / 3.
    """
    waits = (plan.pp - 1) / {"1f1b": 1, "interleaved": CHUNKS, "zero-bubble": 3}[plan.schedule]
    return waits / (plan.micro_batches + waits)


# --- time ------------------------------------------------------------------------------------------------------------------
def hardware_flops(work: Work, plan: Plan) -> float:
    """Return the operations of a step on all GPUs, including recomputation (of all layers, of every second one, or of
    attention)."""
    tokens, shape = work.batch * work.length, work.shape
    attention = 4.0 * shape.layers * shape.width * work.length
    layers = 2.0 * shape.layers * shape.active_parameters + attention
    recomputed = {"none": 0.0, "attention": attention, "every-2": layers / 2, "all": layers}[plan.checkpointing]
    return shape.model_flops(tokens, work.length) + tokens * recomputed


def step_seconds(work: Work, plan: Plan) -> dict[str, float]:
    """Return a lower bound for the time of a step. Raises ValueError if the GPU lacks the precision.

    Every GPU computes at the peak of its data sheet, and every link has its full speed. Bytes that may be sent during computing
    cost nothing.

    The sums of tp and the exchanges of experts cannot overlap with computing, because the next product needs them. Their time
    and the bubble are added. The bytes of pp, dp and cp, and those that backward gathers again, can overlap. But the step takes
    at least as long as the bytes of pp, dp and cp take on their links.
    """
    peak, by_kind = work.cluster.flops(plan.precision), sent_bytes(work, plan)
    if peak is None:
        raise ValueError(f"no {plan.precision} on {work.cluster.gpu.gpu}")
    compute = hardware_flops(work, plan) / (work.cluster.size * peak)
    waiting = SUMS[plan.checkpointing] / (SUMS[plan.checkpointing] + GATHERED_AGAIN)
    exchanges = by_kind["ep"] / _link(work.cluster, plan.tp, plan.ep)
    sums = (waiting * by_kind["tp"] / work.cluster.inside + exchanges) / 1e9
    pipeline = (compute + sums) / (1 - bubble(plan))
    links = _link_seconds(work.cluster, plan, by_kind)
    return {"compute": compute, "sums": sums, "pipeline": pipeline, "links": links, "step": max(pipeline, links)}


def _link(cluster: Cluster, inner: int, ranks: int) -> float:
    """Return the GB/s of one GPU to the others of a group of `ranks`, of which neighbours are `inner` places apart."""
    return cluster.inside if inner * ranks <= cluster.per_node else cluster.between


def _link_seconds(cluster: Cluster, plan: Plan, by_kind: dict[str, float]) -> float:
    """Return the seconds of pp, dp and cp on their links, with tp varying fastest, then cp, then pp, then dp.

    If a node holds several GPUs of one dp group, the group's ring leaves the node once, with the network shares of all of them.
    """
    of_context = _link(cluster, plan.tp, plan.cp)
    of_pipeline = _link(cluster, plan.tp * plan.cp, plan.pp)
    copies_on_node = max(1, cluster.per_node // (plan.tp * plan.cp * plan.pp))
    of_copies = cluster.inside if cluster.nodes == 1 else min(cluster.inside, cluster.between * copies_on_node)
    return (by_kind["pp"] / of_pipeline + by_kind["dp"] / of_copies + by_kind["cp"] / of_context) / 1e9


def mfu_percent(work: Work, plan: Plan, seconds: float) -> float:
    """Return model FLOPs in percent of the data sheets' FLOPs in that time. Recomputation does not count."""
    peak = work.cluster.flops(plan.precision) or math.inf
    return 100 * work.shape.model_flops(work.batch * work.length, work.length) / (seconds * work.cluster.size * peak)


def young_seconds(work: Work) -> float:
    """Return the time between checkpoints that minimises the time lost.

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
    """Return the rules that a plan breaks, each with its numbers, by the rule's name; {} if the plan can run."""
    shape, cluster = work.shape, work.cluster
    holders, total = plan.dp * plan.cp, memory(work, plan)["total"] / 1e9
    interleaved = plan.schedule == "interleaved"
    rules = {
        "product": (
            plan.ranks == cluster.size,
            f"dp x pp x tp{' x cp' * (plan.cp > 1)} is {plan.ranks}, but {cluster.name} has {cluster.size} GPUs",
        ),
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
        "zero-of-one": (plan.zero == 0 or holders > 1, f"ZeRO {plan.zero} shards over the copies, but dp is {plan.dp}"),
        "experts": (
            plan.ep == 1 or (shape.experts % plan.ep == 0 and holders % plan.ep == 0 and shape.experts > 0),
            f"{shape.experts} experts and {holders} ranks with the same layers cannot be divided by ep {plan.ep}",
        ),
        "schedule": (
            plan.schedule == "1f1b" or (plan.pp > 1 and not (interleaved and (
                shape.layers % (plan.pp * CHUNKS) or plan.micro_batches % plan.pp))),
            f"{plan.schedule} needs at least 2 stages; interleaved also {CHUNKS} equal chunks of layers on each stage, and a "
            "number of micro-batches that the number of stages divides",
        ),
        "does-not-fit": (
            total <= cluster.usable_bytes / 1e9,
            f"{total:.1f} GB on the fullest GPU, but only {cluster.usable_bytes / 1e9:.1f} of its "
            f"{cluster.gpu.memory_gb:g} GB may be filled",
        ),
    }  # fmt: skip
    return {name: reason for name, (holds, reason) in rules.items() if not holds}


def list_valid_plans(work: Work, plan: Plan | None = None) -> list[tuple[float, Plan]]:
    """Return every plan in 16 bits without a problem, with the lower bound of its step in seconds, the fastest first.

    The plans use bf16 if the GPU has it, else fp16. They have 1F1B, and neither context nor expert parallelism. If `plan` has
    any of these, all plans with its schedule, its cp and its ep are among them too.
    """
    plans = list(_list_plans(work))
    if plan is not None and plan.is_extended:
        plans += _list_plans(work, plan.cp, plan.ep, plan.schedule)
    valid = [(step_seconds(work, candidate)["step"], candidate) for candidate in plans if not find_problems(work, candidate)]
    return sorted(valid, key=lambda pair: pair[0])


def rank_percent(valid: list[tuple[float, Plan]], seconds: float) -> float:
    """Return the share of the valid plans with a faster step: 0 for the fastest.

    Raises ZeroDivisionError if there are no plans.
    """
    return 100 * sum(step < seconds * (1 - 1e-9) for step, _ in valid) / len(valid)


def least_memory(work: Work) -> float:
    """Return the bytes on the fullest GPU of the plan that needs the least, among plans that break no other rule.

    Up to 16 ranks may share a sequence.
    """
    plans = (plan for cp in (1, 2, 4, 8, 16) if work.cluster.size % cp == 0 for plan in _list_plans(work, cp))
    return min(memory(work, plan)["total"] for plan in plans if find_problems(work, plan).keys() <= {"does-not-fit"})


def _list_plans(work: Work, cp: int = 1, ep: int = 1, schedule: str = "1f1b") -> Iterator[Plan]:
    short = "bf16" if work.cluster.flops("bf16") else "fp16"
    for tp in _divisors(work.cluster.per_node):
        for pp in _divisors(work.cluster.size // (tp * cp)):
            dp = work.cluster.size // (tp * cp * pp)
            for m in _divisors(work.batch // dp) if dp and work.batch % dp == 0 else ():
                for zero in ZERO if dp * cp > 1 else (0,):
                    for checkpointing in CHECKPOINTING:
                        yield Plan(dp, pp, tp, zero, checkpointing, m, short, 0, cp, ep, schedule)


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
