"""The gate for data from a node, a bundle, a course or another user's workspace: its size, its types and its names are checked
here first."""

from gpucourse.outside.names import OutsideError

__all__ = ["OutsideError"]
