"""Your part of 6.5: the loop of an elastic worker, which continues a training run after a crash, with any number of ranks.

You will learn    how ranks agree on the checkpoint to continue from, although one of them cannot read the newest
You will produce  a training run that ends with the losses of an undisturbed one, whichever rank dies
Try it            gpucourse try 6.5
Your part         write `train`: it is called on every rank at the beginning of every life; keep its name and parameter
Reading           modules/06-training-at-scale/lesson-9-crashes.md, "Which checkpoint to load"; elastic.py, what a worker can do
"""

from __future__ import annotations

from elastic import Worker


def train(worker: Worker) -> None:
    """Train from the best common checkpoint to the last step.

    Each step counts once: the steps after the loaded checkpoint are done in order, each on its whole batch, with every sequence
    computed by exactly one rank. No life repeats more steps than necessary. All ranks always make the same calls.

    When a rank dies, the others get PeerLostError. Let it leave `train`: every process then ends, and `train` is called again
    in the next life, perhaps with a different number of ranks.
    """
    raise NotImplementedError("train: which step do all ranks continue from, if each can read different checkpoints?")
