"""The README's way in: a checkout, the demo, and the command on the PATH, in this order and from the project's one address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)


def test_first_block_of_the_readme_clones_then_installs_then_activates() -> None:
    commands = [line.partition("  ")[0].strip() for line in BLOCKS[0].splitlines()]
    address = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    assert commands == [f"git clone {address} && cd gpucourse", "make demo", "make test", "source .venv/bin/activate"]


def test_readme_installs_from_the_checkout_alone() -> None:
    assert not re.search(r"pip install[^`\n]*'?gpucourse", README), "the package is on no index"
