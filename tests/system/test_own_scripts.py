"""Scripts that know nothing of this program, like other people's torchrun scripts: arguments, neighbouring files, data,
checkpoints.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.system.exercising import needs_torch

pytestmark = [pytest.mark.system, needs_torch]

ARGUMENTS = """\
import argparse, os, pathlib
from pairs import Pairs
from models.line import build

parser = argparse.ArgumentParser()
parser.add_argument("total_epochs", type=int)
parser.add_argument("save_every", type=int)
parser.add_argument("--note", default="")
args = parser.parse_args()
data = Pairs(pathlib.Path("data/numbers.txt"))
"""
TRAINING = """\
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
model = DistributedDataParallel(build())
for epoch in range(args.total_epochs):
    for x, y in loader:
        ((model(x) - y) ** 2).mean().backward()
    if epoch % args.save_every == 0:
        os.makedirs(f"checkpoints/rank{rank}", exist_ok=True)
        torch.save(model.module.state_dict(), f"checkpoints/rank{rank}/{epoch}.pt")
dist.barrier()  # a rank that leaves while another still sends may abort it
dist.destroy_process_group()
"""
END = """\
pathlib.Path(f"log-{os.environ['LOCAL_RANK']}.txt").write_text(f"{rank} of {ranks}: {args.note}")
if os.environ["LOCAL_RANK"] == "0":
    with open("data/numbers.txt", "a") as file:
        file.write("changed\\n")
"""
PAIRS = """\
class Pairs:
    def __init__(self, path):
        self.rows = [float(line) for line in path.read_text().split() if line[0].isdigit()]
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        import torch
        return torch.tensor([self.rows[index]]), torch.tensor([2 * self.rows[index]])
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder as another person might have it: a script with a module and a package next to it, and a data folder."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "models").mkdir()
    (folder / "data").mkdir()
    (folder / "train.py").write_text(ARGUMENTS + TRAINING + END)
    (folder / "pairs.py").write_text(PAIRS)
    (folder / "models/line.py").write_text("def build():\n    import torch\n\n    return torch.nn.Linear(1, 1)\n")
    (folder / "data/numbers.txt").write_text("\n".join(map(str, range(32))) + "\n")
    (folder / "data/unused.bin").write_bytes(b"\0" * 1000)
    return folder / "train.py"


@pytest.mark.slow
def test_torchrun_script_runs_as_it_is_with_two_processes_a_node(lab: Learner, script: Path) -> None:
    result = lab.types(
        "run", "--script", str(script), "--launcher", "torchrun", "--nodes", "2", "--procs", "2",
        "--with", str(script.parent / "data"), "--torchrun", "--max-restarts=1 --monitor-interval 0.05",
        "--", "3", "2", "--note", "a 'quoted' $word",
    )  # fmt: skip
    assert "models/line.py, pairs.py" in result.err
    record = lab.newest_run()
    assert (record["state"], record["world_size"], record["max_restarts"]) == ("succeeded", 4, 1)
    assert [end["group"] for end in record["rank_exits"]] == [4] * 4
    assert {output["path"].removeprefix("outputs/") for output in record["outputs"]} == {
        *(f"node{rank // 2}/checkpoints/rank{rank}/{epoch}.pt" for rank in range(4) for epoch in (0, 2)),
        *(f"node{node}/log-{local}.txt" for node in range(2) for local in (0, 1)),
        *(f"node{node}/data/numbers.txt" for node in range(2)),
    }  # unchanged uploads are not collected
    assert record["refused"] == []
    assert (lab.run_folder() / "outputs/node1/log-1.txt").read_text() == "3 of 4: a 'quoted' $word"


@pytest.mark.slow
def test_module_runs_as_a_part_of_its_package(lab: Learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "my checkout" / "pkg").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "data.py").write_text("NUMBER = 7\n")
    (folder / "train.py").write_text("import sys\nfrom .data import NUMBER\nprint('number', NUMBER, sys.argv[1:])\n")
    monkeypatch.chdir(folder.parent)
    start = ("--launcher", "python", "--nodes", "1")
    assert "number 7 ['--lr', '1']" in lab.types("run", "--module", "pkg.train", *start, "--", "--lr", "1").err
    assert "gpucourse run --module PACKAGE.SCRIPT" in lab.types("run", "--script", "pkg/train.py", *start, code=4).out


ALONE = """\
import json, os, pathlib

def shows(path):
    try:
        return os.environ["TOKEN"].encode() in path.read_bytes()
    except OSError:  # that process has ended meanwhile
        return False

print("in a list of processes:", any(map(shows, pathlib.Path("/proc").glob("[0-9]*/cmdline"))))
print("mine", os.environ["MINE"], len(os.environ["TOKEN"]))
pathlib.Path(os.environ["GPUCOURSE_OUT"], "metrics.json").write_text(json.dumps({"steps": 5}))
"""
CHECKS = "checks:\n  - {id: far, title: It went far, value: metrics.steps, at_least: 9, unit: steps, hint: Run longer.}\n"


def holds(path: Path, text: str) -> bool:
    """Return whether a file contains that text."""
    try:
        return path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes()
    except FileNotFoundError:  # the node's host writes a temporary file and renames it
        return False


def test_env_reaches_the_script_secrets_are_in_no_file_and_own_checks_are_judged(lab: Learner, tmp_path: Path) -> None:
    secret = "3f9c-no-file-holds-it"
    (tmp_path / "alone.py").write_text(ALONE)
    (tmp_path / "checks.yaml").write_text(CHECKS)
    words = (
        "run", "--script", str(tmp_path / "alone.py"), "--launcher", "python", "--nodes", "1", "--env", "MINE=a b",
        "--env", "TOKEN", "--checks", str(tmp_path / "checks.yaml"),
    )  # fmt: skip
    result = lab.types(*words, code=5, TOKEN=secret)
    log = (lab.run_folder() / "logs/node0-rank0.log").read_text()
    assert "in a list of processes: False" in log
    assert f"mine a b {len(secret)}" in log
    assert "It went far: 5 steps; expected at least 9 steps [far]" in " ".join(result.out.split())
    record = lab.newest_run()
    assert (record["state"], record["verdict"]) == ("succeeded", "failed")
    assert (record["environment"], record["handed_on"]) == ({"MINE": "a b"}, ["TOKEN"])
    dry = lab.types(*words, "--dry-run", TOKEN=secret).out
    assert "MINE='a b'" in dry
    assert 'TOKEN="$TOKEN"' in dry
    assert "Run longer." in lab.types("check", "alone.py", code=5).out
    files = (Path(folder, name) for folder, _, names in os.walk(lab.workspace.parent) for name in names)
    assert [path for path in files if holds(path, secret)] == []


@pytest.mark.slow
def test_script_runs_unchanged_under_the_profiler(lab: Learner, tmp_path: Path) -> None:
    source = (
        "import sys, torch\n\na = torch.ones(64, 64)\nfor _ in range(5):\n    a = a @ a / 64\nprint(sys.argv[1:], __name__)\n"
    )
    (tmp_path / "mine.py").write_text(source)
    mine_too = "run", "--script", str(tmp_path / "mine.py"), "--launcher", "python", "--nodes", "1", "--profile"
    result = lab.types(*mine_too, "--", "a", "b")
    assert "['a', 'b'] __main__" in result.err
    outputs = lab.run_folder() / "outputs/node0"
    profile = json.loads((outputs / "profile.json").read_text())
    assert {"aten::mm": 5}.items() <= {row["operation"]: row["calls"] for row in profile["rows"]}.items()
    assert (profile["where"], (outputs / "trace.json.gz").read_bytes()[:2]) == ("on the processor", b"\x1f\x8b")
    assert "aten::mm" in (outputs / "profile.txt").read_text()
    assert "no points, because the profiler slowed it down" in result.out
    assert "not for slurm" in lab.types("run", "3.1", "--launcher", "slurm", "--profile", code=2).err


PLANTED = {
    "ui.logpipe:LogPipe.feed": "draw the live screen",
    "runs.diagnose:diagnose": "name the cause of the failure",
    "runs.follow:_explain_silence": "tell why nothing is printed yet",
    "runs.follow:find_silent_ranks": "tell which ranks have printed nothing",
    "remote.silence:SilenceMonitor.note_ended": "watch for ranks that are silent",
    "ui.views.result:result": "show the result",
    "ui.screen:capture": "store the picture of the screen",
}
"""Functions that only show or explain something, and the end of the warning if they fail."""
WITH_FAULTS = """\
import importlib, operator, sys
def fail(*_, **__): raise IndexError("planted")
for place in sys.argv.pop(1).split():
    module, name = place.split(":")
    *owners, last = name.split(".")
    owner = importlib.import_module(f"gpucourse.{module}")
    setattr(operator.attrgetter(".".join(owners))(owner) if owners else owner, last, fail)
from gpucourse.cli.boundary import run_command
sys.exit(run_command(sys.argv[1:]))
"""


def test_run_is_recorded_to_its_end_if_drawing_the_screen_fails(lab: Learner, tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text("print('hello')\nraise SystemExit(3)\n")
    words = ("run", "--script", str(script), "--launcher", "python", "--nodes", "1")
    result = subprocess.run(
        [sys.executable, "-c", WITH_FAULTS, " ".join(PLANTED), *words],
        env=lab.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 4, result.stderr
    log = (lab.workspace / ".gpucourse" / "gpucourse.log").read_text(encoding="utf-8")
    for part in PLANTED.values():
        assert result.stderr.count(f"! could not {part}: IndexError: planted") == 1, part
        assert len([line for line in log.splitlines() if f": could not {part}: IndexError" in line]) == 1, part
    record = lab.newest_run()
    assert (record["state"], record["collected"]) == ("failed", True)
