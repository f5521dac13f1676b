"""Judges the challenge of 5.10: compares the gradients of my_backward.py with autograd's, and measures its largest tensor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from bench import limit_time
from kernel_memory import KernelMemory
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

LENGTHS, LIMIT, SECONDS = (48, 72), 1e-5, 60.0


class LargestTensor(TorchDispatchMode):
    """Records the size of the largest tensor that PyTorch creates inside the `with`, in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        results = operation(*arguments, **(named or {}))
        sizes = (item.nbytes for item in tree_iter(results) if isinstance(item, torch.Tensor))
        self.bytes = max([self.bytes, *sizes])
        return results


def judge(module: Any, device: torch.device, *, heads: int, d: int, block: int, interpreted: bool) -> list[dict[str, Any]]:
    """Return a row for each length, kind and gradient, with the largest error and the limit. Errors in the learner's code are
    raised."""
    rows = []
    for n in LENGTHS:
        for causal in (False, True):
            inputs, saved, right = make_case(n, heads, d, device, causal)
            kernels = [item for item in vars(module).values() if hasattr(item, "pre_run_hooks")] if interpreted else []
            with limit_time(SECONDS), KernelMemory(*kernels) if kernels else nullcontext(), LargestTensor() as largest:
                gradients = module.backward(*inputs, *saved, causal, block)
            rows += compare(gradients, right, n, causal, largest.bytes)
    return rows


def make_case(n: int, heads: int, d: int, device: torch.device, causal: bool) -> tuple[list, list, list]:
    """Return one case: q, k and v, the forward pass's result and logarithms, the incoming gradient, and autograd's gradients in
    float64."""
    generator = torch.Generator().manual_seed(n)
    tensors = [torch.randn(heads, n, d, generator=generator).to(device) for _ in range(4)]
    exact = [tensor.double().requires_grad_() for tensor in tensors[:3]]
    scores = exact[0] @ exact[1].mT * d**-0.5
    if causal:
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool, device=device).triu(1), float("-inf"))
    out = scores.softmax(-1) @ exact[2]
    right = torch.autograd.grad(out, exact, tensors[3].double())
    return tensors[:3], [out.detach().float(), scores.detach().logsumexp(-1).float(), tensors[3]], list(right)


def compare(gradients: Any, right: list[torch.Tensor], n: int, causal: bool, largest: int) -> list[dict[str, Any]]:
    """Return rows for the three gradients. Raises TypeError unless the part returned three tensors of the right shape."""
    heads = right[0].shape[0]
    if not isinstance(gradients, (tuple, list)) or [getattr(item, "shape", None) for item in gradients] != [
        item.shape for item in right
    ]:
        raise TypeError(f"backward must return three tensors of shape {tuple(right[0].shape)}")
    return [
        {
            "length": n, "kind": "causal" if causal else "full", "gradient": name,
            "error": (gradient.double() - exact).abs().max().nan_to_num(float("inf")).item(), "limit": LIMIT,
            "largest_bytes": largest, "scores_bytes": 4 * heads * n * n,
        }
        for name, gradient, exact in zip("qkv", gradients, right, strict=True)
    ]  # fmt: skip


def attempt(
    module: Any, device: torch.device, say: Callable[[str], None], explain: Callable[[Exception], str], **sizes: Any
) -> dict[str, Any]:
    """Try the challenge. Return its `state` (open, right, or the mistake), and `rows` with a row for each gradient."""
    try:
        rows = judge(module, device, **sizes)
    except NotImplementedError:
        return {"state": "open", "rows": []}
    except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way; the error is shown)
        return {"state": explain(error), "rows": []}
    wrong = sorted({row["gradient"] for row in rows if row["error"] > row["limit"]})
    state = f"wrong: the gradient of {', '.join(wrong)}" if wrong else "right"
    if not wrong and any(row["largest_bytes"] >= row["scores_bytes"] for row in rows):
        state = "right, but with a tensor as large as the matrix of scores, which tiles do not need"
    say(f"the challenge, my_backward.py: {state}")
    return {"state": state, "rows": rows}
