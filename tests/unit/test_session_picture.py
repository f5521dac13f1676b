"""The recording of a session in the docs: the commands of today, everything on it, no path of a machine."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

from docs import session

SVG = session.PICTURE.read_text(encoding="utf-8")


def test_it_shows_each_command_and_how_it_ended() -> None:
    texts = [text.text or "" for text in ET.fromstring(SVG).iter("{http://www.w3.org/2000/svg}text")]
    assert [text[2:] for text in texts if text.startswith("$ ")] == list(session.COMMANDS), "take it again: make picture"
    for words in ("✓ lab of module 3 is ready", "✓ passed in ", "Next: gpucourse ", "nothing is left"):
        assert any(words in text for text in texts), words
    assert not [place for place in (Path.home(), Path.cwd(), Path(tempfile.gettempdir())) if f"{place}/" in SVG]
    assert len(SVG) < 40_000


def test_lines_appear_in_their_order_and_text_is_escaped() -> None:
    svg = session.draw([(0.0, "$ a <b>"), (1.5, "✓ done"), (2.0, "")])
    texts = list(ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))
    assert [text.text for text in texts] == ["$ a <b>", "✓ done"]
    assert [text.attrib["style"] for text in texts] == ["animation-delay: 0.00s", "animation-delay: 1.50s"]
    assert "prefers-reduced-motion" in svg


def test_the_last_lines_of_the_ranks_are_shown() -> None:
    logs = [f"[n0 r0] {number}" for number in range(20)]
    assert session.shorten_logs(["a", *logs, "b"]) == ["a", "…", *logs[-session.LOGS :], "b"]
    assert session.shorten_logs(["a", *logs[:3]]) == ["a", *logs[:3]]
