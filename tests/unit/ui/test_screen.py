from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from gpucourse.model.event import LogBytes, Stage
from gpucourse.ui.live import Live
from gpucourse.ui.out import Out
from gpucourse.ui.screen import capture
from gpucourse.ui.tables import Cell, View, table

VIEW = View(title="3.2  DDP training", blocks=(table(["check", "verdict"], [("ranks", Cell("✓ passed", "good"))]),))


def record_screen(path: Path, lines: int) -> str:
    with Live(Out(io.StringIO()), colour=False, moving=False, quiet=True) as live:
        live(Stage(name="connect", text="connecting to 2 nodes", seconds=0.2))
        for number in range(lines):
            live(LogBytes(node="node0", rank=0, data=b"epoch %d \x1b[31m<&>\xff\x07\n" % number))
        live(Stage(name="run", text="running 3.2", seconds=3.0))
    capture(path, command="gpucourse run 3.2 --nodes 2", live=live, view=VIEW, mode="local")
    return path.read_text(encoding="utf-8")


def words(svg: str) -> str:
    root = ET.fromstring(svg)
    return "\n".join("".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")).replace(
        "\xa0", " "
    )


def test_capture_has_the_text_of_the_screen_and_a_limited_size(tmp_path: Path) -> None:
    svg = record_screen(tmp_path / "screen.svg", lines=20_000)
    assert len(svg) < 60_000
    assert re.findall(r"(?:https?:)?//[^\s\"<>]+", svg) == ["http://www.w3.org/2000/svg"], "it needs no network"
    output = words(svg)
    assert "3.2 DDP training · mode: local" in output
    for text in (
        "gpucourse run 3.2 --nodes 2",
        "simulated nodes (mode: local)",
        "connecting to 2 nodes",
        "running 3.2",
        "✓ passed",
    ):
        assert text in output
    assert "epoch 19999 <&>\ufffd\\x07" in output
    assert "earlier lines are in logs/" in output
