"""Solve the view of 7.4 from the highest layer to the lowest: a program sees a file if nothing above hides it."""

from __future__ import annotations

from pathlib import PurePosixPath


def see(layers: list[list[str]]) -> dict[str, int]:
    """Return the files that a program sees, each with the number of its layer."""
    view: dict[str, int] = {}
    taken: set[str] = set()  # paths that hide a lower file or folder of the same path
    emptied: set[str] = set()  # folders of which nothing lower is seen
    folders: set[str] = set()  # folders of higher layers, which hide a lower file
    for number in reversed(range(len(layers))):
        removed_here, emptied_here, files = set(), set(), []
        for path in map(PurePosixPath, layers[number]):
            if path.name == ".wh..wh..opq":
                emptied_here.add(str(path.parent))
            elif path.name.startswith(".wh."):
                removed_here.add(str(path.with_name(path.name.removeprefix(".wh."))))
            else:
                files.append(path)
        for path in files:
            above = {str(parent) for parent in path.parents}
            if not (({str(path)} | above) & taken or above & emptied or str(path) in folders):
                view[str(path)] = number
        taken |= removed_here | {str(path) for path in files}
        emptied |= emptied_here
        folders |= {str(parent) for path in files for parent in path.parents}
    return view
