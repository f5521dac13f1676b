"""Your part of 0.2: which samples a rank gets.

You will learn    what DistributedSampler does without a word between the ranks, and what set_epoch is for
You will produce  a `choose_samples` that splits the data evenly, differently in each epoch, and so that all ranks agree
Try it            gpucourse try 0.2
Your part         the body of `choose_samples`; keep its name and its parameters. DistributedSampler itself does not count
Reading           modules/00-local-foundations/lesson.md, "The same script, several times"
"""

from __future__ import annotations


def choose_samples(samples: int, ranks: int, rank: int, epoch: int, seed: int) -> list[int]:
    """The numbers of the samples that `rank` looks at in `epoch`, in its order.

    The samples are numbered 0 to samples - 1, the ranks 0 to ranks - 1, and there may be fewer samples than ranks. Every rank
    calls this with its own `rank` and the same other arguments, and receives nothing from the others. Together they get
    every sample. All get equally many, as few as that allows: where the samples do not divide, some come twice. The order
    is shuffled, differs from epoch to epoch and from seed to seed, and is the same each time that it is asked for.
    """
    raise NotImplementedError("choose_samples: how can all ranks shuffle alike, without a word to each other?")
