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
    """Return the cheapest way in which the service can run: "time-slicing", "mps", "mig" or "none", which is a separate GPU.

    An `isolated` service belongs to a customer whom no other customer may harm. A service with `within_ms` has promised its
    users an answer in that time, whatever else runs on the card. For all other services it is enough if they get their turn.
    A service that needs more than half of the card's memory, or of its processors, does not share the card.
    """
    raise NotImplementedError("way: who can harm this service if it shares the card in the cheapest way?")


def profile(service: dict, card: dict) -> str:
    """Return the card's smallest profile whose instance is enough for the service.

    `percent` is what the service needs of the processors of the whole card.
    """
    raise NotImplementedError("profile: what share of the processors does a profile have?")


def place(names: list[str], card: dict) -> list[tuple[int, int]]:
    """Return, for each profile in `names`, in order, the number of its GPU, from 0, and the memory slice at which it begins.

    On a GPU, no memory slice may belong to two instances, and the compute slices of all instances may not exceed the card's. An
    instance begins only where its profile allows it to. Use as few GPUs as possible: 3g, 2g and 2g fit on one.
    """
    raise NotImplementedError("place: where may a 3g begin, and what does that leave?")
