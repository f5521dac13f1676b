"""Your part of 0.2: which samples a rank gets.

You will learn    how DistributedSampler works without communication between the ranks, and what set_epoch is for
You will produce  a `choose_samples` that splits the data evenly, and differently in each epoch, so that all ranks agree
Try it            gpucourse try 0.2
Your part         the body of `choose_samples`; keep its name and its parameters. DistributedSampler itself does not count
Reading           modules/00-local-foundations/lesson-2-ranks.md, "The same script, several times"
"""

from __future__ import annotations


def choose_samples(samples: int, ranks: int, rank: int, epoch: int, seed: int) -> list[int]:
    """Return the numbers of the samples that `rank` uses in `epoch`, in order.

    The samples are numbered 0 to samples - 1, the ranks 0 to ranks - 1. There may be fewer samples than ranks. Every rank calls
    this with its own `rank` and otherwise the same arguments, and receives nothing from the other ranks.

    Together, the ranks get every sample. All ranks get the same number of samples, as few as possible: if the samples do not
    divide evenly, some are used twice. The order is shuffled, and depends on the epoch and the seed. The same arguments always
    return the same samples.
    """
    raise NotImplementedError("choose_samples: what does every rank know without asking the others?")
