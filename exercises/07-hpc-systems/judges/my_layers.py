"""Judge my_layers.py of 7.4 by the files that it lists for small images, each with one trap."""

from __future__ import annotations

from gpucourse.judge import Case, Part, Way

WAYS = {
    "lowest-first": Way(
        "a file of a higher layer replaces that of a lower one, and you kept the lower one",
        (
            "        view = {path:",
            "        files = [file for file in files if file not in view]\n        hidden -= set(paths)\n        view = {path:",
        ),
    ),
    "removal-as-file": Way(
        "a removal is an entry of a layer that no program sees, and you list it as a file",
        (
            "files.append(path)\n",
            "files.append(path)\n            if name.startswith('.wh.'):\n                files.append(path)\n",
        ),
    ),
    "not-removed": Way(
        "a file that a higher layer removed is still there. A name that begins with .wh. removes what follows in the name",
        ("(*removed, *files)", "files"),
    ),
    "own-files-removed": Way(
        "a removal took away files of its own layer. It concerns only the layers below, in whatever order the layer lists it",
        (
            "view |= dict.fromkeys(files, number)",
            "view |= {file: number for file in files if not any(is_in(file, place) for place in (*removed, *emptied))}",
        ),
    ),
    "folder-survives": Way(
        "a folder was removed, and its files are still there: a removal of a folder removes everything in it",
        ('path == place or path.startswith(f"{place}/")', "path == place"),
    ),
    "part-of-a-name": Way(
        "/course/data was removed, and a path that only begins with the same letters went with it: compare whole names",
        ('path.startswith(f"{place}/")', "path.startswith(place)"),
    ),
    "not-emptied": Way(
        ".wh..wh..opq hides all that the lower layers have in its folder",
        ("for folder in emptied if", "for folder in () if"),
    ),
    "file-beside-folder": Way(
        "a file and a folder have the same path, in different layers: only the higher one is seen",
        ("        hidden |= {path for path in view for file in files if is_in(file, path)}\n", ""),
    ),
}

OLD = ["/bin/sh", "/course/data/a", "/course/data/b/c", "/course/data.txt", "/course/run"]
IMAGES = {
    "a file that is replaced": [["/bin/sh", "/course/run"], ["/course/run"]],
    "a file that is removed": [["/bin/sh", "/course/.token"], ["/course/.wh..token"]],
    "a folder that is removed": [OLD, ["/course/.wh.data"]],
    "a folder that is removed and made again": [OLD, ["/course/data/new", "/course/.wh.data"]],
    "a file that comes back": [["/bin/sh", "/course/run"], ["/course/.wh.run"], ["/course/run"]],
    "a folder that is emptied": [
        ["/bin/sh", "/lib/torch/old", "/lib/torch/core"],
        ["/lib/torch/core", "/lib/torch/.wh..wh..opq"],
    ],
    "a file in place of a folder": [["/bin/sh", "/lib/torch/core"], ["/lib/torch"]],
    "a folder in place of a file": [["/bin/sh", "/lib/torch"], ["/lib/torch/core"]],
    "an image that is emptied": [OLD, ["/init", "/.wh..wh..opq"]],
}


def _is_in(path: str, place: str, mistake: str) -> bool:
    """Return whether a path is a place or below it."""
    if mistake == "folder-survives":
        return path == place
    return path == place or path.startswith(place if mistake == "part-of-a-name" else f"{place}/")


def _read(paths: list[str], mistake: str) -> tuple[list[str], list[str], list[str]]:
    """Return the files of a layer, the places that it removes, and the beginnings of the paths that it hides."""
    files, removed, emptied = [], [], []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if name == ".wh..wh..opq":
            emptied.append(f"{folder}/")
        elif name.startswith(".wh."):
            removed.append(f"{folder}/{name[4:]}")
        if not name.startswith(".wh.") or mistake == "removal-as-file":
            files.append(path)
    return files, removed, emptied


def _see(layers: list[list[str]], mistake: str = "") -> dict[str, int]:
    """Return the files that a program sees, each with its layer, or the result with one of the mistakes in WAYS."""
    view: dict[str, int] = {}
    for number, paths in enumerate(layers):
        files, removed, emptied = _read(paths, mistake)
        removed_places = {place for place in removed if mistake != "not-removed"} | set(files)
        hidden = {path for path in view for place in removed_places if _is_in(path, place, mistake)}
        if mistake != "not-emptied":
            hidden |= {path for path in view if path.startswith(tuple(emptied))}
        if mistake != "file-beside-folder":
            hidden |= {path for path in view for file in files if _is_in(file, path, mistake)}
        if mistake == "own-files-removed":
            files = [file for file in files if not any(_is_in(file, place, mistake) for place in removed)]
            files = [file for file in files if not file.startswith(tuple(emptied))]
        if mistake == "lowest-first":
            files = [file for file in files if file not in view]
            hidden -= set(paths)
        view = {path: layer for path, layer in view.items() if path not in hidden} | dict.fromkeys(files, number)
    return view


def judge(part: Part) -> None:
    """Judge the view of each image."""
    see = part.function("see")
    cases = [
        Case(name, part.call(see, layers, case=name), _see(layers), {mistake: _see(layers, mistake) for mistake in WAYS})
        for name, layers in IMAGES.items()
    ]
    part.compare(cases)
    part.note(f"right for {len(cases)} images")
