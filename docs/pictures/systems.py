"""The pictures of module 7: the links of a hybrid cube, the ways of a read, the switches of a fat tree."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from docs.pictures.canvas import Canvas

CUBE = {(0, 3): 2, (3, 2): 2, (2, 1): 2, (1, 5): 2, (5, 6): 2, (6, 7): 2, (7, 4): 2, (4, 0): 2}
CUBE |= {(0, 1): 1, (0, 2): 1, (1, 3): 1, (4, 5): 1, (4, 6): 1, (5, 7): 1, (2, 6): 1, (3, 7): 1}
PLACES = {3: (160, 90), 0: (310, 90), 2: (160, 210), 1: (310, 210), 4: (450, 90), 7: (600, 90), 5: (450, 210), 6: (600, 210)}


def draw_cube() -> Canvas:
    """Draw the sixteen pairs of a hybrid cube that have NVLinks, and the ring of those that have two."""
    picture = Canvas(
        "The links of a hybrid cube",
        "Eight GPUs in two squares of four, one square per socket: 3, 0, 1, 2 and 4, 7, 6, 5. Blue lines are two NVLinks: they "
        "make one closed ring, 0, 3, 2, 1, 5, 6, 7, 4 and back to 0. Grey lines are one NVLink: 0 to 1, 0 to 2, 1 to 3, 4 to "
        "5, 4 to 6, 5 to 7, 2 to 6, 3 to 7. All other pairs, such as 3 and 4 or 7 and 0, have none: SYS.",
        300,
    )
    for (a, b), links in sorted(CUBE.items(), key=lambda item: item[1]):
        (x1, y1), (x2, y2) = PLACES[a], PLACES[b]
        detour = {(2, 6): [(x1, 262), (x2, 262)], (3, 7): [(x1, 42), (x2, 42)]}.get((a, b), [])
        points = [(float(x), float(y)) for x, y in [(x1, y1), *detour, (x2, y2)]]
        if links == 2:
            picture.curve(points, "sa")
        else:
            for (left, top), (right, bottom) in pairwise(points):
                picture.line(left, top, right, bottom)
    for gpu, (x, y) in PLACES.items():
        picture.box(x - 26, y - 15, 52, 30, "empty", f"GPU {gpu}")
    picture.note(235, 30, "socket 0", anchor="middle")
    picture.note(525, 30, "socket 1", anchor="middle")
    picture.note(24, 292, "Blue: two NVLinks (NV2). Grey: one (NV1). All other pairs: SYS.")
    return picture


def draw_tree() -> Canvas:
    """Draw a fat tree of two levels: 48 nodes, switches with 40 ports, two links down for each up."""
    picture = Canvas(
        "A fat tree of two levels",
        "One upper switch with 26 of its 40 ports used; 13 links lead to each of two lower switches. Below each lower switch "
        "24 nodes hang, of the 26 for which it has links. Where all nodes of the left half send to the right half, 24 nodes "
        "share 13 links.",
        240,
    )
    picture.box(290, 20, 180, 30, "a", "upper switch: 26 of 40")
    for number, left in enumerate((90, 490)):
        middle = left + 90
        for link in range(13):
            picture.line(middle - 24 + 4 * link, 110, 290 + 45 + 90 * number - 24 + 4 * link, 50)
        picture.box(left, 110, 180, 30, "c", "lower: 13 up, 26 down")
        for node in range(24):
            x = middle - 161 + 14 * node
            picture.line(middle - 80 + 7 * node, 140, x, 190, "grid")
            picture.box(x - 5, 190, 10, 14, "empty")
    picture.note(24, 230, "13 links for 24 nodes: 54 % of a link each, if all of one half send to the other.")
    return picture


def draw_reads() -> Canvas:
    """Draw the ways of a byte from a disk into a process and into a GPU."""
    picture = Canvas(
        "The paths of a read",
        "Four boxes in a row: disk, page cache, buffer of the process, memory of the GPU. Arrows: from the disk into the page "
        "cache, with read-ahead; from the page cache into the buffer, by a read call; from the buffer to the GPU, over PCIe, "
        "pinned or by a copy of the driver. O_DIRECT goes from the disk into the buffer, past the page cache. GPUDirect "
        "Storage goes from the disk into the memory of the GPU.",
        250,
    )
    for left, words, kind in ((20, "disk", "d"), (210, "page cache", "b"), (400, "buffer", "a"), (590, "GPU's memory", "c")):
        picture.box(left, 100, 130, 44, kind, words)
    for left, words in ((150, "ahead"), (340, "read()"), (530, "PCIe")):
        picture.line(left, 122, left + 57, 122, arrow=True)
        picture.note(left + 28, 114, words, anchor="middle")
    for high, right, words in ((60, 465, "O_DIRECT"), (26, 655, "GPUDirect Storage")):
        picture.line(85 if high > 30 else 60, 100, 85 if high > 30 else 60, high)
        picture.line(85 if high > 30 else 60, high, right, high)
        picture.line(right, high, right, 98, arrow=True)
        picture.note(180, high - 6, words)
    picture.text(20, 176, "cold", kind="ink small bold")
    picture.text(210, 176, "warm: begins here", kind="ink small bold")
    picture.note(20, 208, "/proc/self/io counts bytes from the disk as read_bytes, and calls as syscr.")
    picture.note(20, 228, "A warm read begins at the page cache: it is as fast as memory.")
    return picture


def draw_instances() -> Canvas:
    """3g, 2g and 2g on an A100, with the 3g at 0 and at 4."""
    picture = Canvas(
        "Where instances begin",
        "Two A100 with eight memory slices each. Above: a 3g at 0, then a 2g at 4; slices 6 and 7 are left, where no 2g may "
        "begin. Below: the 3g at 4, and both 2g at 0 and 2.",
        190,
    )
    plans = (((0, 4, "3g", "a"), (4, 2, "2g", "b")), ((0, 2, "2g", "b"), (2, 2, "2g", "b"), (4, 4, "3g", "a")))
    for row, plan in enumerate(plans):
        top = 30 + 80 * row
        for place in range(8):
            picture.box(24 + 80 * place, top, 76, 36, "empty", str(place))
        for start, count, words, kind in plan:
            picture.box(24 + 80 * start, top, 80 * count - 4, 36, kind, f"{words} at {start}")
    picture.note(504, 84, "no 2g may begin at 6")
    picture.note(24, 164, "all three on one GPU")
    return picture


def draw_container() -> Canvas:
    """Draw what a container has for itself, and what it shares with its host."""
    picture = Canvas(
        "A container and its host",
        "Two columns. Left the host: its processes, its files, its name. Right a container: its own process numbers, a root "
        "folder from an image, its own name. Both share one kernel with the GPU's driver. libcuda is put from the host into "
        "the container.",
        230,
    )
    hosts = ("processes 1, 2, ... 4711", "files: /usr, /home", "name: vm")
    rows = zip(hosts, ("process 1 (4711)", "files: an image", "name: container"), strict=True)
    for number, (host, own) in enumerate(rows):
        top = 40 + 38 * number
        picture.box(24, top, 250, 32, "empty", host)
        picture.box(486, top, 250, 32, "a", own)
    picture.heading(24, 28, "host")
    picture.heading(486, 28, "container")
    picture.box(24, 164, 712, 36, "c", "one kernel, with the GPU's driver")
    picture.line(274, 94, 484, 94, arrow=True)
    picture.note(380, 86, "libcuda, /dev/nvidia0", anchor="middle")
    picture.note(24, 220, "Namespaces separate what processes see. The kernel is shared, and so is the driver.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {
    "container": draw_container,
    "cube": draw_cube,
    "instances": draw_instances,
    "reads": draw_reads,
    "tree": draw_tree,
}
