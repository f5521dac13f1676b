"""The start of a command: `--help` and `status` import nothing heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.workspace.paths import WorkspacePaths
from tests.waiting import STUCK_S

HEAVY = {"asyncssh", "boto3", "botocore", "matplotlib", "paramiko", "torch"}
LAB = {
    "version": 1, "stack": "03-local", "uid": "w-1", "module": "3", "target": "local", "template": "local", "phase": "ready",
    "created": "2026-01-01T00:00:00Z", "updated": "2026-01-01T00:00:00Z", "nodes_wanted": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "heavy"), [("--help", HEAVY | {"rich.console"}), ("run --help", HEAVY | {"rich.console"}), ("status", HEAVY)]
)
def test_light_command_imports_no_heavy_library(line: str, heavy: set[str], tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path / "workspace")
    paths.deployments.mkdir(parents=True)
    paths.identity.write_text('{"version": 1, "id": "w"}', encoding="utf-8")
    paths.deployment("03-local").write_text(json.dumps(LAB), encoding="utf-8")
    probe = (
        "import sys; from gpucourse.__main__ import run_command\n"
        f"code = run_command({line.split()!r})\n"
        f"print(code, sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    )
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "GPUCOURSE_WORKSPACE": str(tmp_path / "workspace")}
    result = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, env=environment, check=True, timeout=STUCK_S
    )
    assert result.stderr.splitlines()[-1] == "0 []"
