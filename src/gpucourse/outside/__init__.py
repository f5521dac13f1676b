"""The gate: what a node, a bundle, a course or somebody else's workspace sends is bounded, typed and named here first."""

from gpucourse.outside.names import OutsideError

__all__ = ["OutsideError"]
