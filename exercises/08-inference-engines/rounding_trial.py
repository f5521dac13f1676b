"""The measurements of 8.6: a model in many formats, and the same with the learner's parts."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import formats
import torch
from rounded_model import SHAPE, Name, Ruler, round_cache, round_matrices, watch_inputs
from small_llm import Multiply, SmallModel

CALIBRATION = 1000, 1256  # bytes of the text from which scales are chosen
Round = Callable[[torch.Tensor], torch.Tensor]


def multiply_rounded(activation: Round, weight: Round, scales: dict[Name, torch.Tensor] | None = None) -> Multiply:
    """Return a function that multiplies rounded operands; `weight` gets a matrix [out, in].

    With `scales`, activations are divided by them and weights multiplied before rounding.
    """

    def multiply(name: Name, source: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        matrix = matrix.T
        if scales is not None:
            source, matrix = source / scales[name], matrix * scales[name]
        return activation(source) @ weight(matrix).T

    return multiply


def round_token(x: torch.Tensor) -> torch.Tensor:
    """Return activations in 8 bits with a scale for each token, or weights with one for each output."""
    return formats.round_along(x, -1, 8)


def round_tensor(x: torch.Tensor) -> torch.Tensor:
    """Return activations in 8 bits with one scale for all."""
    return formats.round_all(x, 8)


def compare_formats(model: SmallModel, ruler: Ruler, bits: int, group: int) -> list[dict[str, Any]]:
    """Return a row for each way to round the model."""
    in_groups = sorted(
        {(8, 64), (4, 64), (4, 32), (4, 16), (3, 16), (2, 16), (bits, group)}, key=lambda pair: (-pair[0], -pair[1])
    )
    matrices = [tensor for layer in model.layers for tensor in layer.values() if tensor.ndim == 2]
    outputs, weights = sum(matrix.shape[1] for matrix in matrices), sum(matrix.numel() for matrix in matrices)
    rows = [
        _describe(f"int{b} groups of {g}", b + 24 / g, ruler.measure(_round_weights(model, b, g)), "weights")
        for b, g in in_groups
    ]
    for name, bits_per_weight, function in (
        ("int4 a row", 4 + 16 * outputs / weights, lambda weight: formats.round_along(weight, 1, 4)),
        ("int4 a matrix", 4, lambda weight: formats.round_all(weight, 4)),
        ("FP8 E4M3 a matrix", 8, formats.round_to_fp8),
        ("NVFP4", 4.5, lambda weight: formats.round_to_fp4(weight, 16)),
        ("MXFP4", 4.25, lambda weight: formats.round_to_fp4(weight, 32)),
    ):
        rounded = round_matrices(model, lambda _name, weight, function=function: function(weight))
        rows.append(_describe(name, bits_per_weight, ruler.measure(rounded), "weights"))
    for name, activation, weight in (
        ("int8 × int8, a scale a tensor", round_tensor, round_token),
        ("int8 × int8, a scale a token", round_token, round_token),
        ("FP8 × FP8, a scale a token", lambda x: formats.round_to_fp8(x, -1), lambda x: formats.round_to_fp8(x, 1)),
    ):
        multiply = multiply_rounded(activation, weight)
        rows.append(_describe(name, 8, ruler.measure(model, multiply=multiply), "weights and activations"))
    for name, function in (
        ("cache in int8", lambda x: formats.round_along(x, -1, 8)),
        ("cache in int4", lambda x: formats.round_along(x, -1, 4)),
        ("cache in FP8, no scale", formats.convert_to_fp8),
    ):
        rows.append(_describe(name, 16, ruler.measure(model, attend=round_cache(function)), "cache"))
    return rows


def _round_weights(model: SmallModel, bits: int, group: int) -> SmallModel:
    return round_matrices(model, lambda _name, weight: formats.round_in_groups(weight, bits, group))


def _describe(way: str, bits_per_weight: float, measured: dict[str, float], rounded: str) -> dict[str, Any]:
    kind = "integers in groups" if "groups" in way else "integers" if "int" in way else "floating point"
    return {"way": way, "kind": kind, "rounded": rounded, "bits_per_weight": bits_per_weight, "whose": "course", **measured}


# --- in the processes of the learner's parts -----------------------------------------------------------------------------


def save(path: str, plain: SmallModel, outliers: SmallModel, text: torch.Tensor) -> None:
    """Write both models and the text for the processes of the learner's parts."""
    torch.save({"plain": plain.tensors(), "outliers": outliers.tensors(), "text": text}, path)


def load(path: str) -> tuple[SmallModel, SmallModel, torch.Tensor]:
    """Return both models and the text."""
    torch.set_num_threads(1)
    stored = torch.load(path, weights_only=True)
    models = []
    for name in ("plain", "outliers"):
        models.append(SmallModel(dtype=torch.float32, **SHAPE))
        for tensor, value in zip(models[-1].tensors(), stored[name], strict=True):
            tensor.copy_(value)
    return models[0], models[1], stored["text"]


def use_groups(_world: Any, path: str, bits: int, group: int) -> dict[str, Any]:
    """Return the effect of the learner's groups on the model: predictions, bytes per weight, and the largest error in steps."""
    plain, _, text = load(path)
    part = importlib.import_module("my_groups")
    sizes, errors = [0, 0], [0.0]

    def round_trip(_name: Name, weight: torch.Tensor) -> torch.Tensor:
        codes, scale, zero = part.quantise(weight, bits, group)
        sizes[0] += sum(item.numel() * item.element_size() for item in (codes, scale, zero))
        sizes[1] += weight.numel()
        rounded = part.dequantise(codes, scale, zero, bits, group)
        steps = (rounded - weight).abs().view(len(weight), -1, group) / scale.float()[..., None].clamp(min=1e-12)
        errors.append(float(steps.max()))
        return rounded

    measured = Ruler.of(plain, text).measure(round_matrices(plain, round_trip))
    return {**measured, "bytes": sizes[0], "weights": sizes[1], "largest_error": max(errors)}


def use_e4m3(_world: Any, path: str) -> dict[str, Any]:
    """Return how many numbers of bfloat16 the learner's conversion gets wrong, and its effect on the model."""
    plain, _, text = load(path)
    convert = importlib.import_module("my_e4m3").to_e4m3
    numbers = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).float()
    converted, right = convert(numbers.clone()), formats.convert_to_fp8(numbers)
    off = int(((converted != right) & ~(converted.isnan() & right.isnan())).sum())

    def round_trip(_name: Name, weight: torch.Tensor) -> torch.Tensor:
        scale = weight.abs().amax() / formats.FP8_LARGEST
        return convert(weight / scale) * scale

    return {**Ruler.of(plain, text).measure(round_matrices(plain, round_trip)), "off": off}


def use_scales(_world: Any, path: str, bits: int, group: int, alpha: float) -> dict[str, Any]:
    """Return the effect of the learner's scales on the model with outliers, and on the model without any rounding."""
    _, outliers, text = load(path)
    part = importlib.import_module("my_scales")
    inputs = watch_inputs(outliers, text[slice(*CALIBRATION)])
    ruler = Ruler.of(outliers, text)

    def round_trip(weight: torch.Tensor) -> torch.Tensor:
        return formats.round_in_groups(weight, bits, group)

    def search(name: Name, weight: torch.Tensor) -> torch.Tensor:
        scale = part.search(weight, inputs[name], round_trip)
        return round_trip(weight * scale) / scale

    scales = {
        name: part.smooth(source.abs().amax(0), outliers.layers[name[0]][name[1]].T, alpha) for name, source in inputs.items()
    }
    channels = inputs[(1, "gate")].abs().amax(0) / scales[(1, "gate")]
    return {
        "searched": ruler.measure(round_matrices(outliers, search)),
        "smooth_tensor": ruler.measure(outliers, multiply=multiply_rounded(round_tensor, round_token, scales)),
        "smooth_token": ruler.measure(outliers, multiply=multiply_rounded(round_token, round_token, scales)),
        "unrounded": ruler.measure(outliers, multiply=multiply_rounded(_keep, _keep, scales)),
        "channels": channels.tolist(),
    }


def _keep(x: torch.Tensor) -> torch.Tensor:
    return x
