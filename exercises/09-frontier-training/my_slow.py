"""Your part of 9.8: what makes a job slow, if anything does.

You will learn    to tell the cause of a slow step from the ranks that only wait for it
You will produce  a search through the seconds of all ranks: a GPU, a link, a data loader, or nothing
Try it            gpucourse try 9.8
Your part         the body of `find_slow`; keep its name and parameters
Reading           modules/09-frontier-training/lesson-9-sick-gpu.md
"""

from __future__ import annotations

import torch


def find_slow(seconds: dict[str, torch.Tensor]) -> tuple[str, int | None]:
    """Return what is sick, and its number: ("gpu", rank), ("link", stage), ("data", copy) or ("nobody", None).

    Each tensor has the seconds of every rank, as [step, dp, pp, tp]. Rank (d * pp + p) * tp + t is slice t of stage p of copy
    d.

        compute   computing in this step
        wait_tp   waiting for the other slices, after each layer
        wait_pp   waiting for the neighbouring stages, and for the first batch
        wait_dp   waiting for the other copies at the end of the step
        ring_dp   the rings that add up the gradients, once all copies are there

    At most one part is sick. A sick GPU computes at least 8 % longer in every step. A slow link makes the rings of its stage
    at least twice as long. A slow data loader makes one copy begin several forwards late, in every step. Everywhere else, times
    vary by 1 %; in each step some ranks pause, different ones each time; and the first and the last stage have more to compute.
    """
    raise NotImplementedError("find_slow: which ranks are comparable, and what remains if you look at many steps?")
