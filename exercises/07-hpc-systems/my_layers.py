"""Your part of 7.4: which files a program sees in an image that consists of layers.

You will learn    what a layer adds, replaces and removes; why a file that was deleted still travels with the image
You will produce  `see`, whose result the run compares with what the kernel shows of the same layers
Try it            gpucourse try 7.4
Your part         the body of `see`; keep its name and its parameter
Reading           modules/07-hpc-systems/lesson-4-containers.md, "Layers"
"""

from __future__ import annotations


def see(layers: list[list[str]]) -> dict[str, int]:
    """Return the files that a program sees, each with the number of the layer that its content comes from.

    `layers` begins with the lowest, number 0. Each layer is a list of the absolute paths of its files, in any order, without
    folders. A layer was made on top of the lower ones and records what changed. A file of a layer replaces what the lower
    layers have at its path; if one has a file and the other a folder, only the higher one is seen. The OCI image format
    records removals by names:

      /course/.wh.data        the lower layers' /course/data is gone: a file, or a folder with everything in it
      /course/.wh..wh..opq    all that the lower layers have in the folder /course is gone

    A removal concerns only lower layers, never the layer that contains it, nor higher ones. No program sees the removals.
    """
    raise NotImplementedError("see: what does one layer take away from the layers below, and in which order do you apply that?")
