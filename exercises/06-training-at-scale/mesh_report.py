"""Choose the layouts of 6.3, and report how each mesh is placed on nodes, what it sends, and what limits it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import bench
import bubble
import torch
from layouts import LayoutResult
from mesh_model import DIMENSIONS, Layout, Shape, count_weights
from mesh_traffic import NUMBER, MessageBytes, price_by_dimension


def suggest_layouts(size: int, shape: Shape, maximum: int = 3) -> list[Layout]:
    """Return a few layouts for that many ranks: the most even one, then layouts that favour tp, dp and pp."""
    divisors = [number for number in range(1, size + 1) if size % number == 0]
    layouts = [Layout(*sizes) for sizes in itertools.product(divisors, repeat=3) if math.prod(sizes) == size]
    possible = sorted((layout for layout in layouts if not shape.find_problem(layout)), key=_evenness)
    leaning = [next((layout for layout in possible if _leans(layout, name)), None) for name in ("tp", "dp", "pp")]
    return list(dict.fromkeys(layout for layout in [*possible[:1], *leaning] if layout))[:maximum]


def _evenness(layout: Layout) -> tuple[int, int, str]:
    sizes = layout.dp, layout.pp, layout.tp
    return max(sizes), -min(sizes), str(layout)


def _leans(layout: Layout, dimension: str) -> bool:
    return all(getattr(layout, dimension) > getattr(layout, name) for name in DIMENSIONS if name != dimension)


def parse_layouts(text: str) -> list[Layout]:
    """Read `2x2x2,1x2x4` as layouts, and `auto` as an empty list. Raises ValueError if a word is not a layout."""
    return [] if text.strip() == "auto" else [Layout.parse(word) for word in text.split(",")]


def choose_layouts(text: str, size: int, shape: Shape) -> tuple[list[Layout], list[str]]:
    """Return the requested layouts that are possible with that many ranks (`auto`: those of `suggest_layouts`).

    Also return a sentence for each layout that is not possible.
    """
    if text.strip() == "auto":
        return suggest_layouts(size, shape), []
    layouts, rejections = [], []
    for layout in parse_layouts(text):
        reason = f"it needs {layout.size} ranks, but there are {size}" if layout.size != size else shape.find_problem(layout)
        if reason:
            rejections.append(f"{layout} is left out: {reason}")
        else:
            layouts.append(layout)
    return list(dict.fromkeys(layouts)), rejections


def find_refusal(layouts: Sequence[Layout], rejections: Sequence[str], size: int, shape: Shape) -> str | None:
    """Return why nothing can be trained, and what to type, or None if a layout is possible."""
    if size < 2:
        return "one rank has nothing to divide: take two nodes (gpucourse deploy 6 --nodes 2), or --set ranks_per_node=4"
    if layouts:
        return None
    possible = ", ".join(map(str, suggest_layouts(size, shape)))
    advice = f"with {size} ranks take {possible}" if possible else f"no layout of {size} ranks can take this model and batch"
    return f"no layout is left: {'; '.join([*rejections, advice])}"


def list_places(mesh: torch.Tensor, nodes: Sequence[str]) -> list[dict[str, object]]:
    """Return the place of each rank: its node and its coordinates. `mesh` has the rank at each (dp, pp, tp)."""
    at = {mesh[place].item(): place for place in itertools.product(*map(range, mesh.shape))}
    return [{"rank": rank, "node": nodes[rank], **dict(zip(DIMENSIONS, at[rank], strict=True))} for rank in sorted(at)]


def list_groups(mesh: torch.Tensor, dimension: str) -> list[list[int]]:
    """Return the groups of a dimension, each with its ranks in the order of their coordinate."""
    axis = DIMENSIONS.index(dimension)
    groups: list[list[int]] = mesh.movedim(axis, -1).reshape(-1, mesh.shape[axis]).tolist()
    return groups


def count_spread_groups(mesh: torch.Tensor, nodes: Sequence[str], dimension: str = "tp") -> int:
    """Return how many groups of a dimension have ranks on more than one node."""
    return sum(len({nodes[rank] for rank in group}) > 1 for group in list_groups(mesh, dimension))


def draw_mesh(title: str, mesh: torch.Tensor, nodes: Sequence[str]) -> str:
    """Return the mesh as text, node by node, with a line for each rank."""
    lines = [title]
    for node in dict.fromkeys(nodes):
        node_places = [place for place in list_places(mesh, nodes) if place["node"] == node]
        lines += [
            f"  {node}",
            *("    rank {rank:<3} copy {dp:<3} stage {pp:<3} slice {tp}".format(**place) for place in node_places),
        ]
    return "\n".join(lines) + "\n"


def find_bottleneck(milliseconds: Mapping[str, float]) -> str:
    """Return the part of a step that takes the longest."""
    return max(milliseconds, key=lambda part: milliseconds[part])


def summarise(
    result: LayoutResult, layout: Layout, shape: Shape, nodes: Sequence[str], alone_losses: Sequence[float], *, on_gpu: bool
) -> dict[str, object]:
    """Return a layout's row: its differences from one process, the bytes that it sends, its times, and its bottleneck.

    Bytes are for the rank with the most, and times for the slowest rank.
    """
    crossing = price_by_dimension(result.mesh, nodes, result.message_bytes)
    replayed_s, parts_ms = bubble.replay(result.pieces), _take_apart(result, on_gpu=on_gpu)
    share = shape.batch_size // layout.dp * shape.length  # tokens of one copy: its stages and slices work on the same ones
    return {
        "layout": str(layout), "dp": layout.dp, "pp": layout.pp, "tp": layout.tp,
        "loss_off": max(abs(loss / single_loss - 1) for loss, single_loss in zip(result.losses, alone_losses, strict=True)),
        "weight_error": result.weight_error, "loss_after": result.losses[-1],
        "weights_bytes": max(result.weights_bytes), **_compare_bytes(result, layout, shape, nodes),
        **{f"{name}_bytes": max(_count_bytes(sizes, name) for sizes in result.message_bytes) for name in DIMENSIONS},
        **{f"cross_{name}_bytes": crossing[name] for name in DIMENSIONS}, "cross_node_bytes": sum(crossing.values()),
        "tp_groups_across_nodes": count_spread_groups(result.mesh, nodes),
        "in_flight": max(map(bubble.count_in_flight, result.pieces)),
        "bubble_predicted_percent": 100 * bubble.predict_bubble(layout.pp, shape.micro_batches),
        "bubble_replayed_percent": 100 * bubble.idle_share(result.pieces, replayed_s),
        **bench.spread_ms(result.seconds), "tokens_per_s": layout.dp * share / bench.percentile(result.seconds, 50),
        **{f"{part.replace(' messages', '')}_ms": milliseconds for part, milliseconds in parts_ms.items()},
        "bottleneck": find_bottleneck(parts_ms),
    }  # fmt: skip


def _count_bytes(sizes: MessageBytes, dimension: str) -> int:
    return sizes["pp forward"] + sizes["pp back"] if dimension == "pp" else sizes[dimension]


def _compare_bytes(result: LayoutResult, layout: Layout, shape: Shape, nodes: Sequence[str]) -> dict[str, int]:
    """Return the formulas' error on the worst rank, and how many layers a copy holds more than once or not at all."""
    pairs = zip(result.message_bytes, result.formula_bytes, strict=True)
    stages = [count_weights(shape, layout, place["pp"]) for place in list_places(result.mesh, nodes)]
    layers_held = [layer for layers in result.layers for layer in layers]
    return {
        "bytes_off": max(abs(counts[kind] - formula[kind]) for counts, formula in pairs for kind in formula),
        "weights_bytes_off": max(abs(size - NUMBER * count) for size, count in zip(result.weights_bytes, stages, strict=True)),
        "layers_off": sum(layers_held.count(layer) != layout.dp * layout.tp for layer in range(shape.layers)),
    }


def _take_apart(result: LayoutResult, *, on_gpu: bool) -> dict[str, float]:
    """Return the milliseconds of each part of a step.

    The parts are the busiest stage's computing, the pipeline's bubble (from busy times), and each dimension's messages. On a
    GPU, the time of a stage contains the sums of its slices, which are subtracted.
    """
    busiest = 1e3 * max(sum(piece.seconds for piece in pieces) for pieces in result.pieces)
    whole = 1e3 * bubble.replay(result.pieces)
    computing = max(0.0, busiest - result.message_ms["tp"]) if on_gpu else busiest
    messages = {f"{name} messages": result.message_ms[name] for name in DIMENSIONS}
    return {"computing": computing, "bubble": whole - busiest, **messages}
