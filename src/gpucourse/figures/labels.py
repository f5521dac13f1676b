"""Label lines at their ends, and single points beside them, so that a picture needs no legend for its lines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpucourse.figures.rows import PlotPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

SIZE = 8.5
_ROW = 1.15  # distance between two labels, in heights of a label
_MAX_SHARE = 0.3  # share of the picture's width that labels to the right of the axes may take
_MIN_END = 0.85  # a line is labelled to the right of the axes if it ends in the last part of them
_HEADROOM = 0.1  # share of the axes' height for labels above the lines
_GAP, _LEADER = 7.0, 4.0  # points between a mark and its label; a label that is farther away has a line to its mark
_LEADER_STYLE: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 3}
_DISTANCES = (_GAP, 14.0, 24.0)
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_SHADE = 0.7


@dataclass(frozen=True)
class Labelled:
    """A drawn line: its label, its colour and its points."""

    label: str
    colour: str
    points: Sequence[PlotPoint]


def label_lines(axes: Axes, lines: Sequence[Labelled]) -> bool:
    """Write each label next to its line. For a single line, or if there is too little space, write nothing and return False.

    The limits of the axes must be final. Labels to the right of the axes make the axes narrower.
    """
    if len(lines) < 2:
        return False
    singles = [line for line in lines if len(line.points) == 1]
    if len(singles) < len(lines) / 2 and _follow_each_other(lines):
        return _label_sections(axes, lines)
    position, texts = axes.get_position(), list(axes.texts)
    ends = [line for line in lines if line not in singles and _share_of_width(axes, line.points[-1]) > _MIN_END]
    inner_lines = [line for line in lines if line not in ends]
    if _label_ends(axes, ends) and (_label_points(axes, inner_lines, lines) or len(singles) > len(ends)):
        return True
    for text in [text for text in axes.texts if text not in texts]:
        text.remove()
    axes.set_position(position)
    return False


def _share_of_width(axes: Axes, point: PlotPoint) -> float:
    """Return how far to the right a point is: 0 at the left end of the axes, 1 at their right end."""
    across = axes.transData.transform((point.x, point.y))[0]
    return float((across - axes.bbox.x0) / axes.bbox.width)


def _label_ends(axes: Axes, lines: Sequence[Labelled]) -> bool:
    """Write the labels to the right of the axes, each at the height of the end of its line if the other labels leave enough
    space. Return whether there is room for all labels; if not, none is written."""
    if not lines:
        return True
    ends = [line.points[-1] for line in lines]
    width, height = _measure(axes, lines)
    left, bottom, share, high = axes.get_position().bounds
    if width > _MAX_SHARE * axes.figure.bbox.width or len(lines) * height * _ROW > axes.bbox.height:
        return False
    right = 1 - (width + _convert_to_pixels(axes, _GAP + 4)) / axes.figure.bbox.width
    axes.set_position((left, bottom, min(share, right - left), high))
    places = [axes.transData.transform((point.x, point.y)) for point in ends]
    heights = _spread_out([y for _, y in places], height * _ROW, axes.bbox.y0 + height / 2, axes.bbox.y1)
    for line, end, (x, y), label_y in zip(lines, ends, places, heights, strict=True):
        across, up = (distance / _convert_to_pixels(axes, 1) for distance in (axes.bbox.x1 - x, label_y - y))
        leader = {**_LEADER_STYLE, "color": line.colour, "relpos": (0, 0.5)}
        axes.annotate(
            line.label,
            (end.x, end.y),
            (across + _GAP, up),
            textcoords="offset points",
            va="center",
            fontsize=SIZE,
            color=_darken(line.colour),
            annotation_clip=False,
            arrowprops=leader if abs(up) > _LEADER else None,
        )
    return True


def _spread_out(heights: Sequence[float], distance: float, low: float, high: float) -> list[float]:
    """Return the heights, moved as little as possible, so that any two are at least `distance` apart, and all are between `low`
    and `high`."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    blocks: list[tuple[float, int]] = []  # labels that touch: the mean height of their first label, and their number
    for place, index in enumerate(order):
        blocks.append((heights[index] - place * distance, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (lower, lower_count), (upper, upper_count) = blocks[-2:]
            blocks[-2:] = [
                ((lower * lower_count + upper * upper_count) / (lower_count + upper_count), lower_count + upper_count)
            ]
    bases = [base for base, count in blocks for _ in range(count)]
    highest = high - (len(heights) - 1) * distance
    places = [max(low, min(base, highest)) + place * distance for place, base in enumerate(bases)]
    return [place for _, place in sorted(zip(order, places, strict=True))]


def _follow_each_other(lines: Sequence[Labelled]) -> bool:
    """Return whether each line begins to the right of where the previous one ends, such as the phases of a measurement."""
    spans = sorted((min(point.x for point in line.points), max(point.x for point in line.points)) for line in lines)
    return all(end < begin for (_, end), (begin, _) in itertools.pairwise(spans))


def _label_sections(axes: Axes, lines: Sequence[Labelled]) -> bool:
    """Write each label above the middle of its line, at the top of the axes. Return whether no two labels overlap; if they do,
    none is written."""
    box = axes.bbox
    _, top = axes.transData.inverted().transform((box.x0, box.y1 + _HEADROOM * box.height))
    texts = []
    for line in lines:
        places = axes.transData.transform([(line.points[end].x, top) for end in (0, -1)])
        across = (places[:, 0].mean() - box.x0) / box.width
        style: dict[str, Any] = {"fontsize": SIZE, "color": _darken(line.colour), "ha": "center", "va": "top"}
        texts.append(axes.text(across, 0.99, line.label, transform=axes.transAxes, **style))
    boxes = sorted((text.get_window_extent() for text in texts), key=lambda extent: extent.x0)
    if any(left.x1 > right.x0 for left, right in itertools.pairwise(boxes)) or boxes[-1].x1 > axes.figure.bbox.x1:
        for text in texts:
            text.remove()
        return False
    axes.set_ylim(top=top)
    return True


def _label_points(axes: Axes, lines: Sequence[Labelled], all_lines: Sequence[Labelled]) -> bool:
    """Write each label beside the last point of its line, on the side where it covers the fewest marks, labels and lines.
    Return whether no label covers anything."""
    from matplotlib.path import Path
    from matplotlib.transforms import Bbox

    pixels = [axes.transData.transform([(point.x, point.y) for point in line.points]) for line in all_lines]
    mark = _convert_to_pixels(axes, 4)
    occupied_boxes = [Bbox.from_bounds(x - mark, y - mark, 2 * mark, 2 * mark) for places in pixels for x, y in places]
    occupied_boxes += [text.get_window_extent() for text in axes.texts]
    paths = [Path(places) for places in pixels if len(places) > 1]

    def count_covered(box: Bbox) -> int:
        outside = not (axes.bbox.x0 <= box.x0 and box.x1 <= axes.figure.bbox.x1 and axes.bbox.y0 <= box.y0 <= axes.bbox.y1)
        return 2 * outside + box.count_overlaps(occupied_boxes) + sum(path.intersects_bbox(box, filled=False) for path in paths)

    options = [(distance * across, distance * up) for distance in _DISTANCES for across, up in _SIDES]
    covered = 0
    for line in lines:
        end = (line.points[-1].x, line.points[-1].y)
        style: dict[str, Any] = {"fontsize": SIZE, "color": _darken(line.colour), "annotation_clip": False}
        text = axes.annotate(line.label, end, options[0], textcoords="offset points", **style)
        costs = []
        for option in options:
            _move(text, option)
            costs.append(count_covered(text.get_window_extent()))
        shift = options[costs.index(min(costs))]
        _move(text, shift)
        covered += min(costs)
        occupied_boxes.append(text.get_window_extent().padded(_convert_to_pixels(axes, 2)))
        if max(map(abs, shift)) > _GAP:
            leader = {**_LEADER_STYLE, "color": line.colour}
            axes.annotate("", end, shift, textcoords="offset points", arrowprops=leader)
    return covered == 0


def _move(text: Annotation, offset: tuple[float, float]) -> None:
    """Put the text this far from its point, with its nearest edge or corner towards the point."""
    across, up = offset
    text.set_position(offset)
    text.set_horizontalalignment("left" if across > 0 else "right" if across < 0 else "center")
    text.set_verticalalignment("bottom" if up > 0 else "top" if up < 0 else "center")


def _measure(axes: Axes, lines: Sequence[Labelled]) -> tuple[float, float]:
    """Return the width of the widest label, and the height of the tallest one, in pixels."""
    texts = [axes.text(0, 0, line.label, fontsize=SIZE) for line in lines]
    boxes = [text.get_window_extent() for text in texts]
    for text in texts:
        text.remove()
    return max(box.width for box in boxes), max(box.height for box in boxes)


def _convert_to_pixels(axes: Axes, points: float) -> float:
    return points * axes.figure.dpi / 72


def _darken(colour: str) -> str:
    """Return a darker shade of a colour, in which small letters are readable on white."""
    return "#" + "".join(f"{int(int(colour[place : place + 2], 16) * _SHADE):02x}" for place in (1, 3, 5))
