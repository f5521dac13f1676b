"""Decisions in building GPU systems: cases that follow from a puzzle's number, and rules for the right decision.

The list of PCI devices was written for this course in the format of `lspci -nn`, group by group. The profiles are the Q-series
of an L40S (NVIDIA, "Virtual GPU Software User Guide").
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BRIDGE, GRAPHICS, SOUND, DISK, NETWORK = "0604", "0302", "0403", "0108", "0200"
_WORDS = {
    BRIDGE: "PCI bridge [0604]: Intel Corporation PCIe Root Port [8086:7ab8]",
    GRAPHICS: "3D controller [0302]: NVIDIA Corporation AD102GL [L40S] [10de:26b9] (rev a1)",
    SOUND: "Audio device [0403]: NVIDIA Corporation AD102 High Definition Audio Controller [10de:22ba] (rev a1)",
    DISK: "Non-Volatile memory controller [0108]: Samsung Electronics NVMe SSD Controller PM9A1 [144d:a80a]",
    NETWORK: "Ethernet controller [0200]: Mellanox Technologies MT2892 [ConnectX-6 Dx] [15b3:101d]",
}
PROFILES = {1: 32, 2: 24, 3: 16, 4: 12, 6: 8, 8: 6, 12: 4, 16: 3, 24: 2, 48: 1}  # GiB of a profile: how many fit on a GPU


@dataclass(frozen=True)
class Passthrough:
    """A computer's PCI devices by group, the GPU for a virtual machine, and the devices that the host itself needs."""

    devices: tuple[tuple[int, str, str], ...]  # group, address, class
    gpu: str
    host_needs: frozenset[str]

    @property
    def listing(self) -> str:
        """Return a line for each device, in the usual format for devices from /sys/kernel/iommu_groups."""
        return "\n".join(f"IOMMU Group {group:2} {address} {_WORDS[kind]}" for group, address, kind in self.devices)

    def right(self) -> list[str]:
        """Return all devices of the GPU's group except bridges, in order, or [] if the host needs one of them."""
        own_group = next(group for group, address, _ in self.devices if address == self.gpu)
        addresses = sorted(address for group, address, kind in self.devices if group == own_group and kind != BRIDGE)
        return [] if self.host_needs & set(addresses) else addresses


def make_passthrough(puzzle: int) -> list[Passthrough]:
    """Return a computer's three GPUs.

    One shares its group with only its audio device, one with another GPU, and one with a device that the host needs.
    """
    chance = random.Random(puzzle)
    first, second, third, fourth = sorted(chance.sample(range(1, 30), 4))
    devices = [
        (first, "01:00.0", BRIDGE), (first, "02:00.0", GRAPHICS), (first, "02:00.1", SOUND),
        (second, "40:01.0", BRIDGE), (second, "41:00.0", GRAPHICS), (second, "41:00.1", SOUND), (second, "42:00.0", GRAPHICS),
        (third, "80:01.0", BRIDGE), (third, "81:00.0", GRAPHICS), (third, "82:00.0", chance.choice([DISK, NETWORK])),
        (fourth, "c1:00.0", DISK), (fourth + 30, "c2:00.0", NETWORK),
    ]  # fmt: skip
    needs = frozenset({"82:00.0", "c1:00.0", "c2:00.0"})
    return [Passthrough(tuple(devices), gpu, needs) for gpu in ("02:00.0", "41:00.0", "81:00.0")]


def make_machines(puzzle: int) -> list[int]:
    """Return how many GiB of graphics memory each of several virtual machines needs."""
    chance = random.Random(puzzle)
    return [chance.choice([1, 2, 3, 5, 7, 8, 10, 16, 20]) for _ in range(chance.randint(9, 24))]


def gpus_needed(needs: Sequence[int], profiles: Mapping[int, int]) -> int:
    """Return the fewest GPUs needed if all machines on a GPU share one profile, which must be large enough for each of them.

    Take the largest remaining need, give a GPU the smallest profile that fits it, and fill the other places of this GPU with
    the next needs.
    """
    remaining, count = sorted(needs, reverse=True), 0
    while remaining:
        places = profiles[min(size for size in profiles if size >= remaining[0])]
        remaining, count = remaining[places:], count + 1
    return count


@dataclass(frozen=True)
class Network:
    """A fat tree of two levels: the number of nodes, the ports of each switch, and `ratio` links down for each link up."""

    nodes: int
    ports: int
    ratio: int

    def right(self) -> tuple[int, int]:
        """Return how many lower and upper switches are needed.

        One in (ratio + 1) ports of a lower switch goes up. These links fill the ports of the upper switches.
        """
        uplinks = self.ports // (self.ratio + 1)
        leaves = math.ceil(self.nodes / (self.ratio * uplinks))
        return leaves, math.ceil(leaves * uplinks / self.ports)


def make_networks(puzzle: int) -> list[Network]:
    """Return three networks. The first has 48 nodes, switches with 40 ports, and two links down for each link up."""
    chance = random.Random(puzzle)
    networks = [Network(chance.randint(100, 900), chance.choice([36, 40, 64]), chance.choice([1, 2, 3])) for _ in range(2)]
    return [Network(48, 40, 2), *networks]


@dataclass(frozen=True)
class Checkpoint:
    """A file of `gib` GiB that `ranks` ranks write together, every `every_s` seconds.

    Writing may take at most `share` of the time. There are `osts` object storage targets, each of which writes `ost_gb_per_s`
    GB/s.
    """

    gib: int
    ranks: int
    every_s: int
    share: float
    ost_gb_per_s: float
    osts: int

    def right(self) -> tuple[int, int] | None:
        """Return the fewest stripes and the largest stripe in MiB, or None if all storage targets together are too slow.

        The stripe is a power of two, at most 1,024, with which every stripe contains bytes of only one rank.
        """
        stripes = math.ceil(self.gib * 2**30 / (self.share * self.every_s) / (self.ost_gb_per_s * 1e9))
        of_rank = self.gib * 1024 // self.ranks
        largest = max(mib for mib in (2**power for power in range(11)) if of_rank % mib == 0)
        return (stripes, largest) if stripes <= self.osts else None


def make_checkpoints(puzzle: int) -> list[Checkpoint]:
    """Return three checkpoints. The first has 2 TiB, which 64 ranks write every ten minutes. The last is too large for its
    object storage targets to write it in time."""
    chance = random.Random(puzzle)
    checkpoint = Checkpoint(
        chance.choice([90, 100, 250, 300]), 32, chance.choice([300, 900]), 0.02, chance.choice([1.5, 2.0]), 40
    )
    return [Checkpoint(2048, 64, 600, 0.05, 2.0, 64), checkpoint, Checkpoint(16384, 512, 600, 0.05, 2.0, 48)]
