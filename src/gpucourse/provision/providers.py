"""`terraform init`, which fetches providers and modules. It is skipped if the stack's folder already has them.

The checksums that the course pins stay in the lock file. `init` and every later Terraform command compare the providers with
these checksums.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpucourse.errors import MissingError
from gpucourse.storage import write_text
from gpucourse.workspace.locate import personal_cache

MIRROR_VARIABLE = "TF_PLUGIN_MIRROR"

_LOCK = ".terraform.lock.hcl"
_INITIALISED = ".terraform/gpucourse-init"
_SOURCE = re.compile(r'source\s*=\s*"([A-Za-z0-9_-]+/[A-Za-z0-9_-]+)"')
USUAL_MIRRORS = ("opt/*", "opt/terraform/plugins", "usr/local/share/terraform/plugins", "usr/share/terraform/plugins")


def find_mirror(folder: Path, environ: Mapping[str, str], usual: Sequence[str] = USUAL_MIRRORS) -> Path | None:
    """Return a folder on this computer with the stack's providers: TF_PLUGIN_MIRROR or, if it is not set, a usual folder that
    contains all of them.

    Return None if there is none; Terraform then downloads the providers. Raises MissingError if TF_PLUGIN_MIRROR names a folder
    that does not exist.
    """
    if name := environ.get(MIRROR_VARIABLE):
        mirror = Path(name).expanduser()
        if not mirror.is_dir():
            raise MissingError(
                f"the folder of Terraform providers {mirror} does not exist", hint=f"correct or unset {MIRROR_VARIABLE}"
            )
        return mirror.absolute()
    sources = {source for file in folder.rglob("*.tf") for source in _SOURCE.findall(file.read_text(encoding="utf-8"))}
    places = (place for pattern in usual for place in sorted(Path("/").glob(pattern)))
    return next((place for place in places if sources and all(any(place.glob(f"*/{source}")) for source in sources)), None)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for the downloaded providers of all this user's stacks (an AWS provider takes 675 MB)."""
    return personal_cache(environ) / "terraform-plugins"


def is_initialised(folder: Path, version: tuple[int, int, int]) -> bool:
    """Return whether this version of Terraform ran `init` for exactly these files, and every provider is still present."""
    stored = folder / _INITIALISED
    return stored.is_file() and stored.read_text(encoding="utf-8") == _digest(folder, version)


def mark_initialised(folder: Path, version: tuple[int, int, int]) -> None:
    """Record that `init` was run for the folder's files in their current state."""
    write_text(folder / _INITIALISED, _digest(folder, version))


def _digest(folder: Path, version: tuple[int, int, int]) -> str:
    """Return a digest of the version, the Terraform files, the lock file, and the providers that are present."""
    digest = hashlib.sha256(repr(version).encode())
    for file in sorted({*folder.glob("*.tf"), *folder.glob("*.tf.json"), *(folder / "modules").rglob("*.tf"), folder / _LOCK}):
        if file.is_file():
            digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    # host/namespace/name/version/platform: the last part may be a link into a mirror or a cache that no longer exists.
    for provider in sorted((folder / ".terraform" / "providers").glob("*/*/*/*/*")):
        if provider.is_dir():
            digest.update(f"{provider.relative_to(folder)}\0".encode())
    return digest.hexdigest()
