"""Font files that come with matplotlib: DejaVu, which knows the letters and signs of most of the world."""

from __future__ import annotations

from pathlib import Path

from gpucourse.errors import MissingError

_FILES = {"regular": "DejaVuSans.ttf", "bold": "DejaVuSans-Bold.ttf", "italic": "DejaVuSans-Oblique.ttf"}


def font_files() -> dict[str, Path]:
    """The TrueType files by style: regular, bold, italic. Raises MissingError without matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingError("matplotlib is not installed, whose fonts are needed", hint="pip install matplotlib") from error
    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    return {style: folder / name for style, name in _FILES.items()}
