"""Your part of 9.8: what share of a cluster's work becomes training, from published figures.

You will learn    MFU, HFU and goodput, and how long a GPU lives between two failures
You will produce  four figures that agree with published ones
Try it            gpucourse try 9.8
Your part         the bodies of four functions; keep their names and parameters
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
    raise NotImplementedError("mfu: which parameters does a token meet, and how many FLOPs has attention for one token?")


def hfu(mfu_percent: float, recomputed: float) -> float:
    """Return the hardware FLOPs utilisation in percent, of a job with this MFU that computes a share of each forward again.

    `recomputed` is from 0 (nothing) to 1 (the whole forward once more, during backward).
    """
    raise NotImplementedError("hfu: which third of a step's FLOPs is forward?")


def goodput(hours: float, interruptions: list[dict[str, float]]) -> float:
    """Return the percentage of `hours` whose result the training still has.

    Each interruption has `lost_hours`, trained since the last checkpoint, and `down_hours`, until the job trained again.
    """
    raise NotImplementedError("goodput: what does an interruption cost apart from the time in which nothing runs?")


def hours_between_failures(failures: int, days: float, gpus: int, job_gpus: int) -> float:
    """Return the hours between two failures in a job of `job_gpus` GPUs, if `gpus` GPUs had `failures` in `days` days."""
    raise NotImplementedError("hours_between_failures: how many hours does one GPU run between two failures?")
