"""TMPDIR holds the same files after every command as before, whatever a run was and however its client ended."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.waiting import STUCK_S, until

pytestmark = [pytest.mark.system, needs_torch]

LEAVES = """\
import json, os, pathlib, socket, sys, tempfile, time
place = pathlib.Path(tempfile.mkdtemp(prefix="torchinductor_"))
(place / "kernel.py").write_text("x")
pathlib.Path(os.environ["TRITON_CACHE_DIR"], "kernel").write_text("x")
with socket.socket(socket.AF_UNIX) as line:
    line.bind(os.path.join(tempfile.mkdtemp(prefix="torch-shm-dir-"), "manager.sock"))
pathlib.Path("places.json").write_text(json.dumps({name: os.environ[name] for name in ("TMPDIR", "TRITON_CACHE_DIR")}))
if sys.argv[1:] == ["stay"]:
    print("stays", flush=True)
    time.sleep(600)
sys.exit(int(*sys.argv[1:]))
"""


def _leads_to(path: Path, target: Path | None) -> bool:
    return path.is_symlink() and path.readlink() == target


@pytest.mark.slow  # every other test of a lab checks that nothing is left, except in TMPDIR
def test_temporary_files_of_every_verb_go_with_it(tmp_path: Path) -> None:
    temporary = tmp_path / "a long name of a folder for temporary files, longer than any socket's path may be" / "tmp"
    temporary.mkdir(parents=True)
    (temporary / "somebody's").write_text("theirs")
    learner = Learner(tmp_path / "workspace", {"TMPDIR": str(temporary)})
    learner.takes_ports()
    script = tmp_path / "leaves.py"
    script.write_text(LEAVES)
    command = ("run", "--script", str(script), "--nodes", "1", "--launcher")

    def holds_what_it_held() -> bool:
        return [path.name for path in temporary.iterdir()] == ["somebody's"]

    try:
        learner.types("deploy", "3")
        assert holds_what_it_held()
        by_hand = Path(learner.types("ssh", "3", "--", "mktemp -d").out.strip())
        assert by_hand.is_dir()
        assert holds_what_it_held()
        learner.types(*command, "torchrun", "--", "0")
        assert holds_what_it_held()
        places = json.loads((learner.run_folder() / "outputs/node0/places.json").read_text())
        assert not os.path.lexists(places["TMPDIR"])
        assert Path(places["TRITON_CACHE_DIR"], "kernel").exists(), "what makes the next run fast stays as long as the lab"
        learner.types(*command, "python", "--", "3", code=4)
        assert holds_what_it_held()
        learner.types(*command, "python", "--detach", "--", "stay")
        learner.types("cancel", "latest")
        assert holds_what_it_held()
        cancelled = learner.run_folder()
        client = learner.begins(*command, "python", "--", "stay")
        until(lambda: learner.run_folder() != cancelled, "the record of a run")
        until(lambda: any(b"stays" in path.read_bytes() for path in learner.run_folder().glob("logs/*rank0.log")), "the run")
        os.kill(client.pid, signal.SIGKILL)
        client.communicate(timeout=STUCK_S)
        until(holds_what_it_held, "an empty folder after the client was killed")
    finally:
        job = next((learner.stack_folder() / "nodes").glob("node0/home/.gpucourse/jobs/*/tmp"), None)
        link = next((path for path in Path("/tmp").glob("gpucourse-*") if _leads_to(path, job)), None)
        if job is not None:  # no process is left that could clean up
            os.kill(int((job.parent / "supervisor.pid").read_text()), signal.SIGKILL)
        receipt = learner.documents("destroy", "--all", "--yes", "--discard")["receipts"][0]
    assert link is not None, "the run that goes on has a short path to its temporary files"
    assert not os.path.lexists(link)
    assert receipt["leftovers"] == []
    assert holds_what_it_held()
    assert not os.path.lexists(places["TRITON_CACHE_DIR"])
    assert not by_hand.exists()
