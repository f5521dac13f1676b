"""The measurements of 9.5: what rounding and scales do to tensors, to sums and to training, and the same with your parts."""

from __future__ import annotations

import importlib
import math
from typing import Any

import recipes
import torch
from number_formats import E2M1_VALUES, FORMATS, round_to, sum_products
from recipes import Recipe, Round

SIDE, CHANNEL, UPDATES, COPIES = 512, 7, 200, 20_000
COURSE: dict[str, Round] = {
    "bfloat16": recipes.round_bfloat16,
    "e4m3-unscaled": recipes.round_unscaled,
}
YOURS = {"mxfp8": ("E4M3", 32, "E8M0"), "mxfp4": ("E2M1", 32, "E8M0"), "nvfp4": ("E2M1", 16, "E4M3")}
SCALE_BITS = {"float32": 32, "E8M0": 8, "E4M3": 8}


def make_tensors(outlier: float) -> dict[str, torch.Tensor]:
    """Return a tensor whose rows have sizes from 2**-16 to 1, and one with a channel that is `outlier` times as large."""
    source = torch.Generator().manual_seed(0)
    channel = torch.randn(SIDE, SIDE, generator=source)
    channel[:, CHANNEL] *= outlier
    sizes = torch.exp2(torch.randint(-16, 1, (SIDE, 1), generator=source).float())
    return {"rows": torch.randn(SIDE, SIDE, generator=source) * sizes, "channel": channel}


def describe_scheme(scheme: str, whose: str, bits: float, rounding: Round, outlier: float) -> dict[str, Any]:
    """Return a row: the error of the worst row, and the error of all other columns beside an outlier.

    Errors are relative, by the norm.
    """
    tensors = make_tensors(outlier)
    rows, channel = rounding(tensors["rows"]), rounding(tensors["channel"])
    others = torch.arange(SIDE) != CHANNEL
    errors = (rows - tensors["rows"]).norm(dim=1) / tensors["rows"].norm(dim=1)
    off = (channel - tensors["channel"])[:, others].norm() / tensors["channel"][:, others].norm()
    return {
        "scheme": scheme, "whose": whose, "bits_a_number": bits, "worst_row_percent": 100 * float(errors.max()),
        "others_percent": 100 * float(off), "zeros_percent": 100 * float((channel[:, others] == 0).float().mean()),
    }  # fmt: skip


def round_rows(x: torch.Tensor) -> torch.Tensor:
    """Return the values of a matrix after rounding to E4M3 with a scale for each row."""
    codes, scale = recipes.scale_rows(x)
    return codes * scale


def round_with_one_scale(x: torch.Tensor, name: str) -> torch.Tensor:
    """Return a tensor's values after rounding to a format. One scale maps its largest number to the format's largest."""
    scale = x.abs().amax() / FORMATS[name].largest
    return round_to(x / scale, name) * scale


def compare_schemes(outlier: float) -> list[dict[str, Any]]:
    """Return a row for each of the course's ways to scale a tensor."""
    ways: list[tuple[str, float, Round]] = [
        ("E4M3, one scale", 8, lambda x: round_with_one_scale(x, "E4M3")),
        ("E5M2, one scale", 8, lambda x: round_with_one_scale(x, "E5M2")),
        ("E4M3, a scale a row", 8 + 32 / SIDE, round_rows),
        ("E2M1, one scale", 4, lambda x: round_with_one_scale(x, "E2M1")),
    ]
    return [describe_scheme(scheme, "course", bits, rounding, outlier) for scheme, bits, rounding in ways]


def list_sums(bits: int, promote: int) -> list[dict[str, Any]]:
    """Return the errors of sums: 4,096 products in an accumulator of few bits, and 64 gradients in bfloat16."""
    source = torch.Generator().manual_seed(1)
    a, b = (round_to(torch.rand(256, 4096, generator=source), "E4M3") for _ in range(2))
    exact = (a.double() * b.double()).sum(1)
    rows = []
    for each in sorted({0, promote}):
        error = ((sum_products(a, b, bits, each) - exact).abs() / exact).mean()
        way = f"promoted every {each}" if each else "never promoted"
        row = {"sum": "4,096 products", "bits": bits, "promoted_every": each, "way": way}
        rows.append(row | {"error_percent": 100 * float(error)})
    gradients = torch.randn(64, 20_000, generator=source)
    exact = gradients.double().sum(0)
    sent = gradients.bfloat16()
    total = sent[0]
    for gradient in sent[1:]:
        total = total + gradient
    for way, value in (
        ("one after the other in bfloat16", total),
        ("sent in bfloat16, summed in float32", sent.float().sum(0)),
    ):
        error = (value.double() - exact).norm() / exact.norm()
        row = {"sum": "64 gradients", "bits": None, "promoted_every": None, "way": way}
        rows.append(row | {"error_percent": 100 * float(error)})
    return rows


def list_updates(update: float) -> list[dict[str, Any]]:
    """Return a row for each way to add 200 updates to a weight of 1: rounded to bfloat16 each time, or in a master weight."""
    nearest, master = torch.ones((), dtype=torch.bfloat16), torch.ones(())
    for _ in range(UPDATES):
        nearest, master = (nearest.float() + update).bfloat16(), master + update
    rows = [("rounded to nearest", float(nearest)), ("float32 master weight", float(master))]
    return [describe_update(way, "course", value, update) for way, value in rows]


def describe_update(way: str, whose: str, value: float, update: float) -> dict[str, Any]:
    """Return a row: the final weight, and the percentage of the updates' sum that arrived in it."""
    arrived = 100 * (value - 1) / (UPDATES * update)
    return {"way": way, "whose": whose, "value": value, "arrived_percent": arrived}


def train_course(names: list[str], steps: int, width: int, layers: int) -> list[dict[str, Any]]:
    """Return a row for each of the course's recipes among `names`."""
    rows = []
    for name in names:
        if name not in YOURS and name != "e4m3-blocks":
            rounding = recipes.TensorScale() if name == "e4m3-tensor" else COURSE.get(name)
            recipe = None if rounding is None else Recipe(name, rounding)
            rows.append({"recipe": name, "whose": "course", **recipes.train(recipe, steps, width, layers)})
    return rows


def find_smallest(name: str) -> float:
    """Return the smallest number above 0 of a format, which has the code 1."""
    dtype = FORMATS[name].dtype
    if dtype is None:
        return float(E2M1_VALUES[1])
    return float(torch.tensor([1], dtype=torch.int16 if dtype.itemsize == 2 else torch.uint8).view(dtype).float())


# --- in the processes of your parts --------------------------------------------------------------------------------------


def use_step(_world: Any, update: float, names: list[str], steps: int, width: int, layers: int) -> dict[str, Any]:
    """Return the error of your products relative to a GPU's, the training with them, and a weight after random roundings."""
    torch.set_num_threads(1)
    part = importlib.import_module("my_step")
    products_off = recipes.measure_your_products(part)
    weights, source = torch.ones(COPIES), torch.Generator().manual_seed(3)
    for _ in range(UPDATES):
        weights = _read(part.stochastic(weights + update, FORMATS["bfloat16"].mantissa_bits, source), weights, "stochastic")
    mean, spread = float(weights.mean()), float(weights.std()) / math.sqrt(COPIES)
    off = abs(mean - 1 - UPDATES * update) / spread if spread > 0 else math.inf
    result: dict[str, Any] = {"products_off": products_off, "mean": mean, "sigmas_off": min(off, 1e9)}
    row = recipes.train(recipes.YourRecipe("e4m3-blocks", recipes.round_unscaled, functions=part), steps, width, layers)
    result["trained"] = [{"recipe": "e4m3-blocks", "whose": "yours", **row}] if "e4m3-blocks" in names else []
    return result | {"kept_bytes": row["kept_bytes"]}


def _read(result: Any, source: torch.Tensor, name: str) -> torch.Tensor:
    if not isinstance(result, torch.Tensor) or result.shape != source.shape or result.dtype != torch.float32:
        form = (
            f"{result.dtype} of the shape {list(result.shape)}" if isinstance(result, torch.Tensor) else type(result).__name__
        )
        raise TypeError(f"{name} returned {form}, not float32 of the shape {list(source.shape)}")
    return result


def use_blocks(
    _world: Any, outlier: float, block: int, names: list[str], steps: int, width: int, layers: int
) -> dict[str, Any]:
    """Return the rows of your scales, the numbers that saturated, and the training with your recipes."""
    torch.set_num_threads(1)
    part = importlib.import_module("my_blocks")

    def make(name: str, size: int, kind: str) -> Round:
        return lambda x: _read(part.fake_quantise(x, name, size, kind), x, "fake_quantise")

    ways = {f"E4M3, {block} share": ("E4M3", block, "E8M0"), "E4M3, 128 share": ("E4M3", 128, "float32")}
    ways |= {"MXFP8": YOURS["mxfp8"], "MXFP4": YOURS["mxfp4"], "NVFP4": YOURS["nvfp4"]}
    rows, saturated = [], 0
    for scheme, (name, size, kind) in ways.items():
        bits = {"E4M3": 8, "E2M1": 4}[name] + SCALE_BITS[kind] / size
        rows.append(describe_scheme(scheme, "yours", bits, make(name, size, kind), outlier))
        for tensor in make_tensors(outlier).values() if kind != "E4M3" else ():
            blocks = tensor.reshape(-1, size)
            quotients = blocks / part.scales(blocks, FORMATS[name].largest, kind)
            saturated += int((quotients.abs() > FORMATS[name].largest * (1 + 1e-6)).sum())
    sizes = make_tensors(outlier)["rows"]
    rounded, right = make("E4M3", SIDE, "float32")(sizes), round_rows(sizes)
    off = 100 * float(((rounded - right).abs() > 1e-5 * right.abs()).float().mean())
    trained = []
    for recipe in names:
        if recipe in YOURS:
            result = recipes.train(Recipe(recipe, make(*YOURS[recipe])), steps, width, layers)
            trained.append({"recipe": recipe, "whose": "yours", **result})
    return {"blocks": rows, "saturated": saturated, "rows_off_percent": off, "trained": trained}
