"""`node.py up|down MARKS`: leaves MARKS.up while the node exists. MARKS.do, if it exists, is run first, line by line.

say N        print N lines
fail WORDS   say WORDS on stderr and exit with 3
wait         leave MARKS.here, then wait until MARKS.go appears (for some minutes at most)
"""

import pathlib
import sys
import time

action, marks = sys.argv[1], sys.argv[2]


def mark(ending: str) -> pathlib.Path:
    return pathlib.Path(f"{marks}.{ending}")


script = mark("do") if action == "up" else mark("undo")
for line in script.read_text(encoding="utf-8").splitlines() if script.exists() else []:
    word, _, rest = line.partition(" ")
    if word == "say":
        sys.stdout.write(f"{'x' * 100}\n" * int(rest))
    elif word == "fail":
        sys.stdout.write("before the failure\n")
        sys.stdout.flush()
        sys.stderr.write(rest + "\n")
        sys.exit(3)
    elif word == "wait":
        mark("here").touch()
        deadline = time.monotonic() + 200
        while not mark("go").exists() and time.monotonic() < deadline:
            time.sleep(0.01)

if action == "down":
    mark("up").unlink(missing_ok=True)
else:
    mark("up").touch()
