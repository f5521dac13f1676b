"""`terraform init` for providers and modules. It is skipped if a stack has none, or has them already.

The checksums that the course pins stay in the lock file: `init` compares the providers with them, and so does every later
command of Terraform.
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
_BUILT_IN = {"terraform_data", "terraform_remote_state"}
_BLOCK = re.compile(r'^\s*(module|provider|required_providers|backend|cloud)\b\s*("[^"]*"\s*)?\{', re.MULTILINE)
_TYPED = re.compile(r'^\s*(?:resource|data|ephemeral)\s+"?([A-Za-z0-9_-]+)"?\s', re.MULTILINE)
_SOURCE = re.compile(r'source\s*=\s*"([A-Za-z0-9_-]+/[A-Za-z0-9_-]+)"')
USUAL_MIRRORS = ("opt/*", "opt/terraform/plugins", "usr/local/share/terraform/plugins", "usr/share/terraform/plugins")


def needs_init(folder: Path) -> bool:
    """Return whether the stack uses anything that is not part of Terraform itself; True if in doubt."""
    if any(folder.glob("*.tf.json")):
        return True
    text = _text(folder)
    return bool(_BLOCK.search(text)) or not set(_TYPED.findall(text)) <= _BUILT_IN


def find_mirror(
    folder: Path, environ: Mapping[str, str], given: Path | None, usual: Sequence[str] = USUAL_MIRRORS
) -> Path | None:
    """Return a folder on this computer that contains every provider of the stack: `given`, TF_PLUGIN_MIRROR, or a usual place.

    None if there is none: then Terraform downloads them. Raises MissingError if a named folder does not exist.
    """
    named = given or (Path(environ[MIRROR_VARIABLE]).expanduser() if environ.get(MIRROR_VARIABLE) else None)
    if named is not None:
        if not named.is_dir():
            raise MissingError(
                f"the folder of Terraform providers {named} does not exist", hint=f"correct or unset {MIRROR_VARIABLE}"
            )
        return named.absolute()
    wanted = {source for file in folder.rglob("*.tf") for source in _SOURCE.findall(file.read_text(encoding="utf-8"))}
    places = (place for pattern in usual for place in sorted(Path("/").glob(pattern)))
    return next((place for place in places if wanted and all(any(place.glob(f"*/{source}")) for source in wanted)), None)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for downloaded providers of all stacks of this user (an AWS provider takes 675 MB)."""
    return personal_cache(environ) / "terraform-plugins"


def is_initialised(folder: Path, version: tuple[int, int, int]) -> bool:
    """Return whether this version of Terraform ran `init` for exactly these files, and every provider is still in its place."""
    stored = folder / _INITIALISED
    return stored.is_file() and stored.read_text(encoding="utf-8") == _digest(folder, version)


def mark_initialised(folder: Path, version: tuple[int, int, int]) -> None:
    """Note that `init` was run for the folder's files as they are now."""
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


def _text(folder: Path) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in folder.glob("*.tf"))
