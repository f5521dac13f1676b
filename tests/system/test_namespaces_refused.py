"""Where the kernel refuses namespaces, `deploy 2` and `--link` name what forbids and what allows them, and build nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.local.machines.requirements import Lacking, require
from tests.system.cli import Learner

pytestmark = pytest.mark.system


@pytest.mark.parametrize("words", [("deploy", "2"), ("deploy", "3", "--link", "1gbit")])
def test_what_forbids_namespaces_is_named_with_the_command_that_allows_them(tmp_path: Path, words: tuple[str, ...]) -> None:
    try:
        require(slurm=words[1] == "2", cable="1gbit" if "--link" in words else "")
    except Lacking as error:
        pytest.skip(f"{error}: {error.remedy}")
    # In a user namespace of its own one may forbid what is below it, and nothing changes for anybody else.
    unshare = [str(shutil.which("unshare")), "--user", "--map-root-user", "sh", "-c"]
    forbidding = 'echo 0 > /proc/sys/user/max_net_namespaces || exit 77; exec "$@"'
    learner = Learner(tmp_path / "workspace")
    done = subprocess.run(
        [*unshare, forbidding, "sh", sys.executable, "-m", "gpucourse", *words],
        env=learner.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("this kernel does not let the test forbid namespaces")
    assert done.returncode == 3, done.stderr
    assert "allows no namespaces of one's own" in done.stderr
    assert "sudo sysctl -w user.max_net_namespaces=10000" in " ".join(done.stderr.split())
    assert learner.documents("status")["stacks"] == []
