"""Small scripts that misbehave in one way each, for `run --script`; none needs torch's collectives."""

from __future__ import annotations

from pathlib import Path

_HEAD = "import json, os, pathlib, sys, time\nrank = int(os.environ['RANK'])\nout = pathlib.Path(os.environ['GPUCOURSE_OUT'])\n"

BODIES = {
    "fine": "print('hello from', rank, flush=True)\n",
    "exits": "print('rank', rank, 'begins', flush=True)\ntime.sleep(0.3 * (rank == 0))\nsys.exit(3 if rank == 1 else 0)\n",
    "hangs": "print('waiting', flush=True)\ntime.sleep(600)\n",
    "loud": "line = b'%d: ' % rank + b'x' * 94 + b'\\n'\nblock = line * 10000\nfor _ in range(200):\n    os.write(1, block)\n",
    "escapes": "os.write(1, b'\\x1b[2J\\x1b]0;owned\\x07\\xff\\xfe bad \\x80 utf\\r\\nnext\\n')\n",
    "links": (
        "(out / 'good.txt').write_text('good')\n"
        "(out / 'leak').symlink_to('/etc/passwd')\n(out / 'dirlink').symlink_to('/etc')\n"
        "(out / 'we ird\\n\"name').write_text('odd')\n"
    ),
    "huge": "with open(out / 'huge.bin', 'wb') as file:\n    file.truncate(3 << 30)\n(out / 'small.txt').write_text('small')\n",
    "arguments": "(out / 'argv.json').write_text(json.dumps(sys.argv[1:]))\n",
    "brief": (
        "for step in range(60):\n    print('step', step, 'of rank', rank, flush=True)\n    time.sleep(0.05)\n"
        "(out / 'done.txt').write_text('x')\n"
    ),
}


def write(folder: Path, name: str) -> str:
    """The path of the script of that name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(_HEAD + BODIES[name])
    return str(path)
