"""The process of one mock account: `python -m tests.mock_aws.server FOLDER [computers | machines]`.

It says its port in one line and then serves until its standard input ends, so it never outlives whoever started it.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

os.environ.pop("MOTO_ACCOUNT_ID", None)
os.environ.pop("MOTO_AMIS_PATH", None)
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"  # the images are our own
os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "true"
os.environ["MOTO_ENABLE_KEYPAIR_VALIDATION"] = "true"
os.environ["MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION"] = "true"

from werkzeug.serving import make_server

from tests.mock_aws import patches
from tests.mock_aws.computers import SimulatedComputers
from tests.mock_aws.gate import Gate
from tests.mock_aws.machines import SimulatedMachines
from tests.mock_aws.state import State

STANDING = {"computers": SimulatedComputers, "machines": SimulatedMachines}


def main(folder: Path, behind: str = "") -> None:
    """Serve one account on a free port of 127.0.0.1."""
    state = State(folder=folder)
    patches.install(state)
    standing = STANDING[behind](state) if behind else None
    state.computers = standing
    server = make_server("127.0.0.1", 0, Gate(state), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # moto prints; nobody reads the pipe any more
    sys.stdin.buffer.read()
    state.faults.clear()
    server.server_close()
    if standing is not None:
        standing.close()
    sys.stderr.flush()
    os._exit(0)  # at once: to take moto's books apart one by one would need seconds


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
