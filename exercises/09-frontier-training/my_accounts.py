"""Your part of 9.8: what share of a cluster's work becomes training.

You will learn    MFU, HFU and goodput: what was counted, and which hours of training a job still has
You will produce  two figures that agree with published ones, and what is left of a day with four interruptions
Try it            gpucourse try 9.8
Your part         the bodies of three functions; keep their names and parameters
Reading           modules/09-frontier-training/lesson-9-sick-gpu.md
"""

from __future__ import annotations

from typing import Any


def mfu(job: dict[str, Any]) -> float:
    """Return the model FLOPs utilisation in percent: the FLOPs that the model needs, as a share of those that the GPU could do.

    `job` has: `parameters`, and `active_parameters`, those that one token uses; `layers`; `attention_width`, heads times their
    width; `sequence`, tokens; `is_causal`, whether only the half of attention that a causal model needs is counted;
    `tokens_per_s`, of one GPU; `peak_tflops` of the data sheet for dense matrices, and `sparse_peak_tflops` for matrices with
    structured zeros.

    Forward and backward need 6 FLOPs for each parameter and token, and in addition, for each layer, attention's two products
    with all tokens of the sequence.
    """
    raise NotImplementedError("mfu: which parameters does a token meet, and how many FLOPs does attention need for one token?")


def hfu(mfu_percent: float, recomputed: float) -> float:
    """Return the hardware FLOPs utilisation in percent, of a job with this MFU that recomputes a share of each forward pass.

    `recomputed` is from 0 (nothing) to 1 (the whole forward once more, during backward).
    """
    raise NotImplementedError("hfu: which third of a step's FLOPs is forward?")


def goodput_percent(log: list[dict[str, Any]]) -> float:
    """Return the percentage of the log's hours in which the training computed what it still has at the end.

    `log` is what a job wrote, in order of time. Each entry has an `hour`, a `step` and an `event`:

        trains   from now on, training continues after `step` steps: from a state that was saved, or from the first state, 0
        saves    training pauses, and the state after `step` steps is saved
        stops    the job is interrupted
        ends     the log ends while the job trains. Only the last entry is of this kind

    A job may lose nodes and get others, so its steps take longer at some times than at others.
    """
    raise NotImplementedError("goodput_percent: which hours does the job lose when it continues after an earlier step?")
