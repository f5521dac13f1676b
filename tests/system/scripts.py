"""Small scripts for `run --script` that misbehave in one way each. None needs torch's collectives."""

from __future__ import annotations

from pathlib import Path

_HEAD = "import json, os, pathlib, sys, time\nrank = int(os.environ['RANK'])\nout = pathlib.Path(os.environ['GPUCOURSE_OUT'])\n"

BODIES = {
    "hangs": "print('waiting', flush=True)\ntime.sleep(600)\n",
    "brief": (
        "for step in range(60):\n    print('step', step, 'of rank', rank, flush=True)\n    time.sleep(0.05)\n"
        "(out / 'done.txt').write_text('x')\n"
    ),
}


def write(folder: Path, name: str) -> str:
    """Return the path of the script of that name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(_HEAD + BODIES[name])
    return str(path)
