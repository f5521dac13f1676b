"""What `terraform init` is for: providers and modules. Left out where a stack has none, or has them already."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gpucourse.errors import MissingError
from gpucourse.workspace.locate import personal_cache

MIRROR_VARIABLE = "TF_PLUGIN_MIRROR"

_BUILT_IN = {"terraform_data", "terraform_remote_state"}
_BLOCK = re.compile(r'^\s*(module|provider|required_providers|backend|cloud)\b\s*("[^"]*"\s*)?\{', re.MULTILINE)
_TYPED = re.compile(r'^\s*(?:resource|data|ephemeral)\s+"?([A-Za-z0-9_-]+)"?\s', re.MULTILINE)
_SOURCE = re.compile(r'source\s*=\s*"([A-Za-z0-9_-]+/[A-Za-z0-9_-]+)"')
_USUAL_MIRRORS = ("opt/*", "opt/terraform/plugins", "usr/local/share/terraform/plugins", "usr/share/terraform/plugins")


def needs_init(folder: Path) -> bool:
    """Whether the stack uses anything that does not come with Terraform itself. In doubt, yes."""
    if any(folder.glob("*.tf.json")):
        return True
    text = _text(folder)
    return bool(_BLOCK.search(text)) or not set(_TYPED.findall(text)) <= _BUILT_IN


def find_mirror(folder: Path, environ: Mapping[str, str], given: Path | None) -> Path | None:
    """A folder on this machine that holds every provider of the stack: `given`, TF_PLUGIN_MIRROR, or a usual place.

    None where there is none: then Terraform downloads them. Raises MissingError where one was named and is not there.
    """
    named = given or (Path(environ[MIRROR_VARIABLE]).expanduser() if environ.get(MIRROR_VARIABLE) else None)
    if named is not None:
        if not named.is_dir():
            raise MissingError(
                f"the folder of Terraform providers {named} does not exist", hint=f"correct or unset {MIRROR_VARIABLE}"
            )
        return named.absolute()
    wanted = {source for file in folder.rglob("*.tf") for source in _SOURCE.findall(file.read_text(encoding="utf-8"))}
    usual = (place for pattern in _USUAL_MIRRORS for place in sorted(Path("/").glob(pattern)))
    return next((place for place in usual if wanted and all(any(place.glob(f"*/{source}")) for source in wanted)), None)


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where downloaded providers are kept for all stacks of this person (an AWS provider takes 675 MB)."""
    return personal_cache(environ) / "terraform-plugins"


def inits_folder(environ: Mapping[str, str]) -> Path:
    """Where it is kept what `terraform init` made, for the next stack with the same files."""
    return personal_cache(environ) / "terraform-inits"


def _text(folder: Path) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in folder.glob("*.tf"))
