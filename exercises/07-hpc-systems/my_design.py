"""Your part of 7.5: five decisions in building GPU systems, each as a rule that works for any numbers.

You will learn    what goes to a guest with a GPU; what one profile per GPU costs; how many switches and stripes you need
You will produce  five functions; the run calls them with the cases of your puzzle
Try it            gpucourse try 7.5
Your part         the bodies of the five functions; keep their names and parameters
Reading           modules/07-hpc-systems/lesson-5-decisions.md
"""

from __future__ import annotations


def to_vfio(listing: str, gpu: str, host_needs: set[str]) -> list[str]:
    """Return the PCI addresses to bind to vfio-pci, in order, so that a virtual machine can get `gpu`.

    A line of the listing: `IOMMU Group 13 02:00.0 3D controller [0302]: NVIDIA ...`. A group is passed through as a whole,
    except its PCI bridges, class [0604]. Return an empty list if the group has a device that the host needs.
    """
    raise NotImplementedError("to_vfio: which devices share the group of the GPU?")


def gpus_needed(needs: list[int], profiles: dict[int, int]) -> int:
    """Return the fewest GPUs for virtual machines with these needs in GiB.

    `profiles` maps the GiB of each profile to the number of such machines that fit on a GPU. All machines of a GPU have the
    same profile. A machine may have a larger profile than it needs.
    """
    raise NotImplementedError("gpus_needed: which machine decides the profile of a GPU?")


def switches(nodes: int, ports: int, ratio: int) -> tuple[int, int]:
    """Return the lower and upper switches of a fat tree of two levels. Each node has one link.

    A lower switch sends one link up for every `ratio` nodes below it, and uses as many of its ports as that allows. The links
    of all lower switches fill the ports of the upper ones.
    """
    raise NotImplementedError("switches: how many of a lower switch's ports go up?")


def stripes(gib: int, ranks: int, every_s: int, share: float, ost_gb_per_s: float, osts: int) -> tuple[int, int] | None:
    """Return the stripe count and the stripe size in MiB of a checkpoint that `ranks` ranks write as one file, in equal parts.

    The checkpoint has `gib` GiB, is written every `every_s` seconds and may take `share` of that time. A target writes
    `ost_gb_per_s` GB/s (10**9 bytes).
    Take as few stripes as possible, and the largest power of two up to 1,024 MiB with which no stripe has bytes of two ranks.
    Return None if `osts` targets are too few.
    """
    raise NotImplementedError("stripes: how many bytes per second have to be written?")


def scheduler(runs: str, starts: str, shares: str) -> str:
    """Return "slurm" or "kubernetes" for a workload.

    `runs`: "to its end" or "for ever".
    `starts`: "all ranks at once", "when it is its turn" or "by itself".
    `shares`: how it shares GPUs: "by queue", "by fair share" or "by autoscaling".
    """
    raise NotImplementedError("scheduler: what ends, and what runs for ever?")
