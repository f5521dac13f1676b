"""The gate: data from a node, a bundle, a course or another user's workspace is bounded, typed and named here first."""

from gpucourse.outside.names import OutsideError

__all__ = ["OutsideError"]
