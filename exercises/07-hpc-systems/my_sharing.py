"""Your part of 7.1: which services share a GPU, in which way, and where the instances of MIG are placed.

You will learn    what time-slicing, MPS and MIG divide, and what they do not; why instances have places
You will produce  a way for any service, the smallest profile for it, and places on as few GPUs as possible
Try it            gpucourse try 7.1
Your part         the bodies of `way`, `profile` and `place`; keep their names and parameters
Reading           modules/07-hpc-systems/lesson.md, "Three ways to share"
"""

from __future__ import annotations

# A service is a dict: {"name": "chat-0", "gib": 9.1, "percent": 20, "isolated": True, "within_ms": 50 or None}
# A card is a dict: {"name": "a100-80", "gib": 80, "compute": 7, "memory": 8, "profiles": {...}}, with its profiles by name, the
# smallest first: {"1g.10gb": {"compute": 1, "memory": 1, "gib": 10, "starts": [0, 1, 2, 3, 4, 5, 6]}, ...}. Without MIG: {}


def way(service: dict, card: dict) -> str:
    """Return the cheapest way that gives the service what it needs.

    From the cheapest to the most expensive: "time-slicing", "mps", "mig", and "none", a separate GPU. What a service needs:

    - memory and processors: a card is shared only by services that leave at least half of both to the others.
    - isolation, if `isolated`: no other service on the card can end it, use up its memory, or compete for its caches.
    - an answer within `within_ms`, if that is not None, even while the other services compute.
    """
    raise NotImplementedError("way: which of the needs does the cheapest way not meet?")


def profile(service: dict, card: dict) -> str:
    """Return the card's smallest profile with enough GiB and processors.

    A profile's share of the processors is its `compute`, divided by the card's.
    """
    raise NotImplementedError("profile: what share of the processors does a profile have?")


def place(names: list[str], card: dict) -> list[tuple[int, int]]:
    """Return, for each profile in `names`, in order, the number of its GPU, from 0, and the memory slice at which it begins.

    On a GPU, no memory slice may belong to two instances, and the compute slices of all instances may not exceed the card's. An
    instance begins only where its profile allows it to. Use as few GPUs as possible: 3g, 2g and 2g fit on one.
    """
    raise NotImplementedError("place: where may a 3g begin, and what does that leave?")
