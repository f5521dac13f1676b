"""`deploy 3 --link`: a slower network between simulated nodes. If it is impossible, the refusal says why. It can be undone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.local.machines.requirements import Lacking, require
from tests.system import scripts
from tests.system.cli import Learner

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def somebody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Yield a learner whose computer can limit the rate of a link."""
    try:
        require(slurm=False, cable="1gbit")
    except Lacking as error:
        pytest.skip(f"{error}: {error.remedy}")
    learner = Learner(tmp_path_factory.mktemp("link") / "workspace")
    with learner.leaves_nothing():
        yield learner
    assert str(learner.workspace) not in Path("/proc/mounts").read_text(encoding="utf-8")


def _cable(learner: Learner, node: int) -> str:
    return learner.types("ssh", "3", "--node", str(node), "--", "tc qdisc show dev eth0").out


def test_deploy_sets_a_delay_or_says_why_not(somebody: Learner) -> None:
    result = somebody.types("deploy", "3", "--link", "100mbit,2ms", code=None)
    if result.code == 0:  # a kernel with netem: there and back takes twice the delay
        assert "netem" in _cable(somebody, 0)
        somebody.types("destroy", "3", "--yes", "--discard")
        return
    assert result.code == 3
    assert "this kernel has no netem" in result.err
    assert "leave out the delay: 100mbit" in result.err
    assert somebody.documents("status")["stacks"] == []


@pytest.mark.slow
def test_link_limits_the_ranks_to_its_rate_until_it_is_removed(somebody: Learner, tmp_path: Path) -> None:
    somebody.types("deploy", "3")
    somebody.types("deploy", "3", "--link", "100mbit")  # existing nodes become separate machines
    nodes = somebody.documents("status")["stacks"][0]["nodes"]
    assert [node["healthy"] for node in nodes] == [True, True]
    for node in (0, 1):
        assert "tbf" in _cable(somebody, node)
        assert "rate 100Mbit" in _cable(somebody, node)
        assert somebody.types("ssh", "3", "--node", str(node), "--", "hostname").out.strip() == f"node{node}"

    profiled = somebody.types("run", "3.3", "--set", "collective=all_reduce", "--set", "max_bytes=1048576")
    document = json.loads((somebody.run_folder() / "outputs" / "node0" / "metrics.json").read_text(encoding="utf-8"))
    assert (document["link_gbps"], document["link_gb_per_s"], document["link_burst_bytes"]) == (0.1, 0.0125, 131_072)
    assert document["above_link"] == 0, "what passes at once is no bandwidth above the link's"
    assert 0 < document["summary"][0]["percent_of_link"] < 115
    assert "passed" in profiled.out

    somebody.types("run", "--script", scripts.write(tmp_path, "hangs"), "--launcher", "python", "--nodes", "2", "--detach")
    going = somebody.newest_run()["id"]
    assert f"run {going} is still on them" in somebody.types("deploy", "3", "--link", "none", code=2).err
    somebody.types("cancel", going)

    somebody.types("deploy", "3", "--link", "none")
    assert all(node["healthy"] for node in somebody.documents("status")["stacks"][0]["nodes"])
    assert "rate 100Mbit" not in somebody.types("ssh", "3", "--", "tc qdisc show 2>/dev/null; true").out

    somebody.types("destroy", "3", "--yes", "--discard")
    assert somebody.processes() == []
    namespaces = subprocess.run(["lsns", "-n", "-o", "command"], capture_output=True, text=True, check=False).stdout
    assert str(somebody.workspace) not in namespaces
    assert not (somebody.stack_folder() / "nodes").exists()
