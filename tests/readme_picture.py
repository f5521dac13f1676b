"""The README's picture: the captured screen of a real run of 3.2 on two simulated nodes.

`make picture` (`python -m tests.readme_picture`) takes it anew, in a workspace of its own that is gone afterwards.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "run.svg"
EXERCISE, RUN = "3.2", ("run", "3.2", "--nodes", "2")
SHOWN = "/home/learner/gpucourse"  # is in the picture where the workspace is
TEXT = "{http://www.w3.org/2000/svg}text"


def screen_of(workspace: Path) -> str:
    """Return the screen of a run in this workspace, as SVG. Raises CalledProcessError if a command fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GPUCOURSE_")}

    def types(*words: str) -> None:
        command = [sys.executable, "-m", "gpucourse", *words]
        subprocess.run(command, env={**environment, "GPUCOURSE_WORKSPACE": str(workspace)}, check=True)

    try:
        types("deploy", EXERCISE.partition(".")[0])
        types(*RUN)
    finally:
        types("destroy", "--all", "--yes", "--discard")
    (screen,) = workspace.glob(f"runs/{EXERCISE}/*/screen.svg")
    return screen.read_text(encoding="utf-8").replace(str(workspace), SHOWN)


def find_foreign_paths(svg: str) -> list[str]:
    """Return the absolute paths on the screen that are not below SHOWN."""
    text = "\n".join("".join(element.itertext()) for element in ET.fromstring(svg).iter(TEXT))
    paths = re.findall(r"(?<![\w/.])/(?:[\w.@-]+/)+[\w.@-]*", text)
    return [path for path in paths if not path.startswith(SHOWN)]


def main() -> None:
    """Write the picture, or end with a sentence where the screen shows paths of this machine."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-", dir="/tmp") as folder:  # as long as SHOWN: all columns stay in place
        if len(folder) != len(SHOWN):
            sys.exit(f"{folder} is not as long as {SHOWN}, so the columns of the picture would move")
        try:
            svg = screen_of(Path(folder))
        except subprocess.CalledProcessError as error:
            sys.exit(f"the picture stays as it was: {error}")
    if paths := find_foreign_paths(svg):
        sys.exit(f"the screen shows paths of this machine, so the picture stays as it was: {', '.join(paths)}")
    PICTURE.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
