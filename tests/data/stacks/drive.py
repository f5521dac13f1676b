"""Work on a stack of tests/system/provisioning.py in a process that a test may kill: `drive.py up|down ROOT STACK NODES`."""

import os
import signal
import sys
from pathlib import Path

from gpucourse.errors import GpucourseError
from gpucourse.provision.binary import find_terraform
from gpucourse.provision.stack import TerraformStack
from gpucourse.workspace.paths import StackPaths

signal.signal(signal.SIGINT, signal.default_int_handler)  # the process that started the tests may have ignored it
action, root, name, nodes = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
stack = TerraformStack(
    paths=StackPaths(root / "stacks" / name),
    template=Path(__file__).parent / "pair",
    variables={"node_count": nodes, "python": sys.executable, "folder": str(root / "marks" / name)},
    binary=find_terraform(os.environ),
)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


try:
    result = getattr(stack, action)(say)
    say("RESULT", result)
except GpucourseError as error:
    say(type(error).__name__, error.what, "HINT", error.hint)
    sys.exit(int(error.exit_code))
