"""Make the environment of a session from some of the host's variables, some of the client's, and the node's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gpucourse.local import processes

ROOT = "GPUCOURSE_NODE_ROOT"
# The folder of the module that torch loads automatically in every process of the node.
TORCH_EXTENSION = Path(__file__).parent / "torch_extension"

_KEPT = {
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LD_LIBRARY_PATH",
    "NO_PROXY",
    "PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
}
_KEPT |= {name.lower() for name in _KEPT if name.endswith("_PROXY")}
_KEPT_FOR_GPU = ("CUDA_", "NVIDIA_", "NCCL_", "HF_")
"""Prefixes of variables for a node with GPUs, such as those that set the visible GPUs and the folder of downloaded models."""
_ACCEPTED = {
    "LANG",
    "COLORTERM",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
}
_ACCEPTED_STARTS = ("LC_", "GPUCOURSE_", "OMP_", "MKL_", "GLOO_", "NCCL_", "TORCH_", "CUDA_")
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
_SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"  # chroot, sysctl and daemons; Debian leaves them out of a plain user's PATH


def extend_path(path: str) -> str:
    """Return the PATH `path`, extended by the folders of the system's own programs."""
    return f"{path}:{_SYSTEM}"


def make_node_environment(
    *,
    name: str,
    uid: str,
    user: str,
    python: str,
    home: Path,
    shell: str,
    host: Mapping[str, str],
    root: str = "",
    real: bool = False,
) -> dict[str, str]:
    """Return the variables that every session on the node starts with.

    `host`: the environment of the process that hosts the node.
    `root`: the folder that replaces the root of the node's file system, or an empty string.
    `real`: whether the node is this computer itself. If so, the node keeps this computer's GPU settings.
    """
    starts = ("LC_", *_KEPT_FOR_GPU) if real else ("LC_",)
    inherited = {key: value for key, value in host.items() if key in _KEPT or key.startswith(starts)}
    path = inherited.get("PATH", _FALLBACK_PATH)
    return {
        **inherited,
        "PATH": extend_path(f"{Path(python).parent}{os.pathsep}{path}"),
        "PYTHONPATH": str(TORCH_EXTENSION),
        "HOME": str(home),
        "PWD": str(home),
        "SHELL": shell,
        "USER": user,
        "LOGNAME": user,
        "GPUCOURSE_NODE": name,
        processes.STACK: uid,
        processes.NODE: f"{uid}/{name}",
        **({ROOT: root} if root else {}),
    }


def list_accepted_patterns() -> str:
    """Return the variables that a client may add, as patterns for sshd."""
    return " ".join([*sorted(_ACCEPTED), *(f"{start}*" for start in _ACCEPTED_STARTS)])


def make_session_environment(node: Mapping[str, str], requested: Mapping[str, str], terminal: str | None) -> dict[str, str]:
    """Return the node's environment plus the variables that a client is allowed to set. A client's variable never replaces one
    of the node's own."""
    variables = {key: value for key, value in requested.items() if key in _ACCEPTED or key.startswith(_ACCEPTED_STARTS)}
    fixed = {key: value for key, value in node.items() if key not in _ACCEPTED and not key.startswith("LC_")}
    return {**node, **variables, **fixed, **({"TERM": terminal} if terminal else {})}
