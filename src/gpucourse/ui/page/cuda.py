"""The page about a CUDA program: its source as a heat map, and pictures of the lanes of a request."""

from __future__ import annotations

from dataclasses import dataclass

from gpucourse.model.cuda import BANK_BYTES, BANKS, SECTOR_BYTES, CudaReport, CudaRequest, widen_rows
from gpucourse.report.html import make_environment, make_policy
from gpucourse.ui.page.markup import TEMPLATES
from gpucourse.ui.views.cuda import WORDS, sum_lines

LANES = 32
MAX_HEAT = 31  # a line with this many sectors or conflicts per request has the hottest colour


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """A line of the source. `heat` is from 0 (cold) to 1 (hot). `sectors`, `conflicts` and `lanes` are the counts per request,
    or None if nothing was counted."""

    number: int
    text: str
    heat: float
    sectors: float | None
    conflicts: float | None
    lanes: float | None


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A request of a warp as boxes: for each lane, the column of its bank, or of its sector, and the row of its turn.

    `boxes`: label, column and row. The label is the number of a lane or, if several lanes share the box, the number of these
    lanes: `x32`.
    `columns` and `rows`: the size of the picture.
    `caption`: a sentence that says what the picture shows.
    `wider`: a sentence that says how many turns the request would need if each row of the array had one more element, or an
    empty text.
    """

    title: str
    boxes: tuple[tuple[str, int, int], ...]
    columns: int
    rows: int
    caption: str
    wider: str


def render_cuda(name: str, source: str, report: CudaReport) -> bytes:
    """Return the page as an HTML document in UTF-8, without scripts or links to other files."""
    style = TEMPLATES.joinpath("cuda.css").read_text(encoding="utf-8")
    text = (
        make_environment(TEMPLATES)
        .get_template("cuda.html")
        .render(
            name=name,
            report=report,
            lines=_list_lines(name, source, report),
            pictures=[
                (kernel.name, request.line, draw(request))
                for kernel in report.kernels
                for request in kernel.requests
                if request.file == name
            ],
            words=WORDS,
            style=style,
            policy=make_policy(style),
        )
    )
    return text.encode()


def _list_lines(name: str, source: str, report: CudaReport) -> list[SourceLine]:
    by_line = sum_lines(name, report)
    rows: list[SourceLine] = []
    for number, text in enumerate(source.expandtabs(4).splitlines(), 1):
        counts = by_line.get(number, [])
        sectors = max((item.sectors_per_request for item in counts if item.sectors_per_request), default=None)
        conflicts = max(
            (item.conflicts_per_request or 0.0 for item in counts if not item.sectors and item.requests), default=None
        )
        lanes = min((item.lanes_per_request for item in counts if item.lanes_per_request), default=None)
        excess = max((item.sectors - item.sectors_ideal) / item.requests for item in counts) if counts else 0.0
        heat = min(1.0, max(excess, conflicts or 0.0) / MAX_HEAT)
        rows.append(SourceLine(number=number, text=text, heat=heat, sectors=sectors, conflicts=conflicts, lanes=lanes))
    return rows


def draw(request: CudaRequest) -> Picture:
    """Return the picture of a request: its banks and turns if it accesses shared memory, otherwise its sectors."""
    lanes = [(lane, address) for lane, address in enumerate(request.addresses) if address is not None]
    return _draw_banks(request, lanes) if request.access.startswith("shared") else _draw_sectors(request, lanes)


def _draw_banks(request: CudaRequest, lanes: list[tuple[int, int]]) -> Picture:
    words_by_bank: dict[int, list[int]] = {}
    lanes_by_box: dict[tuple[int, int], list[int]] = {}
    for lane, address in lanes:
        word = address // BANK_BYTES
        words = words_by_bank.setdefault(word % BANKS, [])
        if word not in words:
            words.append(word)
        lanes_by_box.setdefault((word % BANKS, words.index(word)), []).append(lane)
    turns = max(map(len, words_by_bank.values()), default=0)
    wider = widen_rows(request)
    return Picture(
        title=WORDS[request.access],
        boxes=tuple((_label(members), *place) for place, members in lanes_by_box.items()),
        columns=BANKS,
        rows=turns,
        caption=f"Each column is a bank, each row a turn: {len(lanes)} lanes need {_count(turns)}.",
        wider="" if wider is None else f"If a row of this array were one element wider, they would need {_count(wider)}.",
    )


def _draw_sectors(request: CudaRequest, lanes: list[tuple[int, int]]) -> Picture:
    sectors: dict[int, list[int]] = {}
    for lane, address in lanes:
        sectors.setdefault(address // SECTOR_BYTES, []).append(lane)
    columns = {sector: column for column, sector in enumerate(sorted(sectors))}
    boxes = tuple((str(lane), columns[sector], row) for sector, members in sectors.items() for row, lane in enumerate(members))
    needed = -(-len({address for _, address in lanes}) * request.size // SECTOR_BYTES)
    return Picture(
        title=WORDS[request.access],
        boxes=boxes,
        columns=len(columns),
        rows=max(map(len, sectors.values()), default=0),
        caption=f"Each column is a sector of {SECTOR_BYTES} bytes: {len(lanes)} lanes with {request.size} bytes each touch "
        f"{len(columns)}, and {needed} would be enough for these bytes.",
        wider="",
    )


def _label(lanes: list[int]) -> str:
    return str(lanes[0]) if len(lanes) == 1 else f"x{len(lanes)}"


def _count(turns: int) -> str:
    return f"{turns} turn{'' if turns == 1 else 's'}"
