"""The GPUs of this computer: those that the driver lists, and those that torch can use."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.model.cloud import Finding
from gpucourse.outside import OutsideError
from gpucourse.outside.documents import parse_typed

LOOK_S = 120.0  # seconds: torch is large, and the first import on a rented computer reads it from a slow disk
_DRIVER_S = 20.0
_WSL = "/usr/lib/wsl/lib"
_LOOK = """
import json
answer = {"torch": "", "gpus": []}
try:
    import torch
except ImportError:
    pass
else:
    answer["torch"] = torch.__version__
    if torch.cuda.is_available():
        answer["gpus"] = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
print(json.dumps(answer))
"""

SIMULATED = "gpucourse deploy 1 --target local"


@dataclass(frozen=True)
class _Usable:
    """The torch version of one Python, and the GPUs that torch can use. The version is empty if torch is not installed."""

    torch: str
    gpus: tuple[str, ...]


def list_cards(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the GPUs that the driver lists; none if there is no driver or it does not answer.

    nvidia-smi is looked up on the PATH of `environ` and in WSL's folder.
    """
    program = shutil.which("nvidia-smi", path=f"{environ.get('PATH', '')}:{_WSL}")
    if program is None:
        return ()
    try:
        completed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=_DRIVER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = completed.stdout.splitlines() if completed.returncode == 0 else []
    return tuple(line.partition(": ")[2].split(" (UUID")[0] for line in lines if line.startswith("GPU "))


def _find_usable(python: str) -> _Usable:
    """Return the torch version of this Python and the GPUs that it can use.

    Raises MissingError if the Python does not start or does not answer.
    """
    hint = "name a Python that has torch: node_python in gpucourse.yaml"
    try:
        completed = subprocess.run([python, "-c", _LOOK], capture_output=True, text=True, timeout=LOOK_S, check=False)
        return parse_typed(completed.stdout.splitlines()[-1], _Usable)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(f"{python} could not be queried about torch: {error}", hint=hint) from error
    except (IndexError, OutsideError) as error:
        last = (completed.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise MissingError(f"{python} could not be queried about torch: {last}", hint=hint) from error


def require_gpus(python: str, environ: Mapping[str, str], simulated: str) -> tuple[str, ...]:
    """Return the GPUs that this Python can use. Raises MissingError if there is no GPU, or if torch cannot use it.

    If there is no GPU, the error suggests `simulated`, a command that needs no GPU.
    """
    usable = _find_usable(python)
    if usable.gpus:
        return usable.gpus
    cards = list_cards(environ)
    if not cards:
        raise MissingError("no GPU here: use simulated nodes", hint=simulated)
    lacks = f"its torch {usable.torch} cannot see the GPU" if usable.torch else "it has no torch"
    raise MissingError(
        f"{cards[0]} is in this computer, but {python} cannot use it: {lacks}",
        hint=f"install a build for CUDA: {python} -m pip install torch; or name another Python: node_python in gpucourse.yaml",
    )


def find_requirements(context: Context, *, is_selected: bool) -> list[Finding]:
    """Return the finding about this computer's GPU. A missing GPU is an error only if this target `is_selected`.

    For another target, torch is loaded only if the driver lists a GPU, because loading it takes seconds.
    """
    if not (is_selected or list_cards(context.environ)):
        return [Finding(what="GPU", state="ok", detail="none in this computer; simulated nodes need none")]
    try:
        gpus = require_gpus(context.settings.node_python or sys.executable, context.environ, SIMULATED)
    except MissingError as error:
        return [Finding(what="GPU", state="missing" if is_selected else "warning", detail=error.what, mend=error.hint)]
    suffix = f" ({len(gpus)} of them)" if len(gpus) > 1 else ""
    return [Finding(what="GPU", state="ok", detail=f"{gpus[0]}{suffix}; use it: gpucourse deploy 1 --target here")]
