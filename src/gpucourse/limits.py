"""The limits that more than one part of the program enforces."""

from __future__ import annotations

MAX_NODES = 64
"""The largest number of nodes in one lab or run."""
MAX_RANKS_PER_NODE = 64
MIN_LAB_HOURS = 0.25
MAX_LAB_HOURS = 72.0
"""A lab exists for no longer than this, however often it is extended. Terraform also receives this limit and enforces it."""
DEFAULT_LAB_HOURS = 4.0
"""A lab ends itself after this time unless the learner sets another one."""
