"""From an exercise, an inventory and parameters to a launch plan: pure, so that `--dry-run` prints what will happen."""

from __future__ import annotations

from gpucourse.launch.planning import NodeFacts, Request, choose_nodes, plan

__all__ = ["NodeFacts", "Request", "choose_nodes", "plan"]
