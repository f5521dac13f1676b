"""Screenshots of the page for docs/images, taken with Chromium, of a workspace in which 3.1 and 3.2 really ran.

`make picture` (`python -m tests.page_pictures`) takes them again, in a workspace that is removed afterwards.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.chromium import Chromium

IMAGES = Path(__file__).parent.parent / "docs" / "images"
CUDA_PAGE = IMAGES.parent / "cuda.md"
_SOURCE = re.compile(r'^```cpp title="transpose.cu"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
RUNS = (
    ("run", "3.1", "--nodes", "2", "--predict", "times-of-4-kib=c"),
    ("run", "3.2", "--nodes", "1", "--no-predict"),
    ("run", "3.2", "--nodes", "2", "--predict", "each-or-flat=b"),
)


class PagePicture(NamedTuple):
    """One screenshot: its name, a pattern for the page (the newest match is taken), and the size and colours of the window."""

    name: str
    page: str
    width: int = 1280
    height: int = 820
    dark: bool = False


PICTURES = (
    PagePicture("page-progress", "index.html"),
    PagePicture("page-run", "runs/3.2/*.html", height=1250),
    PagePicture("page-compare", "compare/3.2.html", dark=True),
    PagePicture("page-lesson", "book/3-2.html", width=390, height=800, dark=True),
)


def take_pictures(workspace: Path) -> dict[str, bytes]:
    """Return each screenshot as PNG, by its name. Raises CalledProcessError if a command fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GPUCOURSE_")}

    def types(*words: str) -> None:
        command = [sys.executable, "-m", "gpucourse", *words]
        subprocess.run(command, env={**environment, "GPUCOURSE_WORKSPACE": str(workspace)}, check=True)

    try:
        types("deploy", "3")
        for words in RUNS:
            types(*words)
    finally:
        types("destroy", "--all", "--yes", "--discard")
    types("open", "--no-browser")
    pictures = {}
    with Chromium(workspace / "browser") as browser:
        for picture in PICTURES:
            place = max(workspace.glob(f"page/{picture.page}"))
            tab = browser.open(place.as_uri(), width=picture.width, height=picture.height, dark=picture.dark)
            pictures[picture.name] = tab.take_picture()
        source = workspace / "transpose.cu"
        source.write_text(_SOURCE.findall(CUDA_PAGE.read_text(encoding="utf-8"))[0], encoding="utf-8")
        command = [sys.executable, "-m", "gpucourse", "cuda", source.name, "--open"]
        subprocess.run(command, cwd=workspace, env={**environment, "DISPLAY": "", "WAYLAND_DISPLAY": ""}, check=True)
        tab = browser.open((workspace / "transpose.cu.html").as_uri(), width=900, height=2130)
        pictures["cuda-page"] = tab.take_picture()
    return pictures


def main() -> None:
    """Write the screenshots. If a command fails, exit with a message."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-") as folder:
        try:
            pictures = take_pictures(Path(folder))
        except subprocess.CalledProcessError as error:
            sys.exit(f"the pictures stay as they were: {error}")
    for name, data in pictures.items():
        IMAGES.joinpath(f"{name}.png").write_bytes(data)
        sys.stdout.write(f"{name}.png: {len(data) // 1000} KB\n")


if __name__ == "__main__":
    main()
