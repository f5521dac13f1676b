"""Solve the view of 7.4 layer by layer: remove the files that a layer hides in those below, then add its own."""

from __future__ import annotations


def is_in(path: str, place: str) -> bool:
    """Return whether a path is a place or below it."""
    return path == place or path.startswith(f"{place}/")


def see(layers: list[list[str]]) -> dict[str, int]:
    """Return the files that a program sees, each with the number of its layer."""
    view: dict[str, int] = {}
    for number, paths in enumerate(layers):
        files, removed, emptied = [], [], []
        for path in paths:
            folder, _, name = path.rpartition("/")
            if name == ".wh..wh..opq":
                emptied.append(folder)
            elif name.startswith(".wh."):
                removed.append(f"{folder}/{name[4:]}")
            else:
                files.append(path)
        hidden = {path for path in view for place in (*removed, *files) if is_in(path, place)}
        hidden |= {path for path in view for folder in emptied if path.startswith(f"{folder}/")}
        hidden |= {path for path in view for file in files if is_in(file, path)}
        view = {path: layer for path, layer in view.items() if path not in hidden}
        view |= dict.fromkeys(files, number)
    return view
