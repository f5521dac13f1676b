"""Find font files: DejaVu, which comes with matplotlib and covers many languages, and installed fonts for other characters."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from gpucourse.errors import MissingError

_FILES = {"regular": "DejaVuSans.ttf", "bold": "DejaVuSans-Bold.ttf", "italic": "DejaVuSans-Oblique.ttf"}


def font_files() -> dict[str, Path]:
    """Return the TrueType files by style: regular, bold, italic. Raises MissingError without matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingError("matplotlib is not installed, and its fonts are needed", hint="pip install matplotlib") from error
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    return {style: folder / name for style, name in _FILES.items()}


def fonts_for(characters: str) -> list[Path]:
    """Return installed fonts that together cover as many of these characters as possible, the most useful font first. Raises
    MissingError without matplotlib."""
    code_points = {ord(character) for character in characters}
    if not code_points:
        return []
    font_files()
    from matplotlib.font_manager import findSystemFonts
    from matplotlib.ft2font import FT2Font

    covered_by: dict[str, set[int]] = {}
    for path in sorted(findSystemFonts()):
        with suppress(OSError, RuntimeError, ValueError):  # the file is not a font
            covered_by[path] = code_points & set(FT2Font(path).get_charmap())
    files: list[Path] = []
    while covered_by and code_points & set().union(*covered_by.values()):
        font = max(covered_by, key=lambda path: len(covered_by[path] & code_points))
        code_points -= covered_by.pop(font)
        files.append(Path(font))
    return files
