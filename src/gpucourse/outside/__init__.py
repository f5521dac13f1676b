"""Check the size, types and names of data from a node, a bundle, a course or another user's workspace before it is used."""

from gpucourse.outside.names import OutsideError

__all__ = ["OutsideError"]
