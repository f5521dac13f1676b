"""A picture as SVG text: boxes, lines and words on a grid of units, in colours that follow the reader's light or dark page."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

WIDTH = 760
CHARACTER = 7.2  # average width of a character at 13 units, to check that a text fits
STYLE = """
.ink{fill:#1f2328}.dim{fill:#59636e}.line{stroke:#59636e;stroke-width:1.2;fill:none}.grid{stroke:#d1d9e0;stroke-width:1}
.a{fill:#0969da}.b{fill:#bf8700}.c{fill:#1a7f37}.d{fill:#cf222e}.e{fill:#8250df}.empty{fill:#eff2f5}
.sa{stroke:#0969da}.sb{stroke:#bf8700}.sc{stroke:#1a7f37}.sd{stroke:#cf222e}.se{stroke:#8250df}
.on{fill:#ffffff}.curve{fill:none;stroke-width:2.2}
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}.small{font-size:11px}.bold{font-weight:600}
@media (prefers-color-scheme:dark){
.ink{fill:#f0f6fc}.dim{fill:#9198a1}.line{stroke:#9198a1}.grid{stroke:#3d444d}
.a{fill:#4493f8}.b{fill:#d29922}.c{fill:#3fb950}.d{fill:#f85149}.e{fill:#ab7df8}.empty{fill:#212830}
.sa{stroke:#4493f8}.sb{stroke:#d29922}.sc{stroke:#3fb950}.sd{stroke:#f85149}.se{stroke:#ab7df8}
.on{fill:#0d1117}}
""".replace("\n", "")


@dataclass
class Canvas:
    """One picture, `height` units high. `alt` describes the picture in words."""

    title: str
    alt: str
    height: float
    parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, kind: str, words: str = "") -> None:
        """Draw a filled rectangle with words in its middle. Raises ValueError if they do not fit."""
        self._inside(x, y, x + width, y + height)
        if len(words) * CHARACTER * 11 / 13 > width + 2:
            raise ValueError(f"{self.title}: {words!r} is wider than its box of {width:.0f}")
        self.parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3"/>')
        if words:
            ink = "ink" if kind == "empty" else "on"
            self.text(x + width / 2, y + height / 2 + 4, words, anchor="middle", kind=f"{ink} small")

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", kind: str = "ink") -> None:
        """Write a line of words. Raises ValueError if it leaves the picture."""
        wide = len(words) * CHARACTER * (11 / 13 if "small" in kind else 1)
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        self._inside(left, y - 11, left + wide, y)
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>')

    def heading(self, x: float, y: float, words: str, *, anchor: str = "start") -> None:
        """Write a line of words in bold."""
        self.text(x, y, words, anchor=anchor, kind="ink bold")

    def label(self, x: float, y: float, words: str, *, anchor: str = "start") -> None:
        """Write a small line of words."""
        self.text(x, y, words, anchor=anchor, kind="ink small")

    def note(self, x: float, y: float, words: str, *, anchor: str = "start") -> None:
        """Write a small line of words in grey."""
        self.text(x, y, words, anchor=anchor, kind="dim small")

    def legend(self, y: float, *entries: tuple[float, str, str]) -> None:
        """Write the meaning of the colours: for each entry (x, colour, words), a coloured box and its words."""
        for x, kind, words in entries:
            self.box(x, y, 16, 14, kind)
            self.note(x + 22, y + 12, words)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "line") -> None:
        """Draw a straight line."""
        self.parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def curve(self, points: list[tuple[float, float]], kind: str) -> None:
        """Draw a line through these points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline class="curve {kind}" points="{path}"/>')

    def dot(self, x: float, y: float, kind: str) -> None:
        """Draw a point of a measurement."""
        self.parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')

    def _inside(self, left: float, top: float, right: float, bottom: float) -> None:
        if left < 0 or top < 0 or right > WIDTH or bottom > self.height:
            raise ValueError(f"{self.title}: something at {left:.0f}, {top:.0f} to {right:.0f}, {bottom:.0f} is outside")

    def svg(self) -> str:
        """Return the whole file."""
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:g}" role="img" aria-labelledby="t d">',
            f'<title id="t">{escape(self.title)}</title><desc id="d">{escape(self.alt)}</desc>',
            f"<style>{STYLE}</style>",
            *self.parts,
            "</svg>\n",
        ])  # fmt: skip
