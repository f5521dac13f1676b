"""The evidence file of the live hour: every command and its answer, without private data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucourse.storage import write_bytes
from gpucourse.workspace.files import to_json

_PRIVATE_KEYS = {
    "account",
    "address",
    "arn",
    "host_key",
    "owner",
    "Owner",
    "private_address",
    "proxy",
    "ssh_cidr",
    "user",
}
_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_PERSON = ("HOME", "USER", "LOGNAME")
_EVERYBODY = {"", "root", "ubuntu"}
_PATTERNS = [
    (re.compile(r"-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|\Z)", re.DOTALL), "(key)"),
    (re.compile(r"\b(?:ssh-\w+|ecdsa-sha2-\w+) AAAA\S+"), "(public key)"),
    (re.compile(r"\bSHA256:[\w+/=]{20,}"), "(fingerprint)"),
    (re.compile(r"\b(?:AKIA|ASIA|AIDA|AROA)[A-Z0-9]{12,}\b"), "(key id)"),
    (re.compile(r"\b(user|assumed-role|role|federated-user)/(?!aws-service-role|gpucourse)[^\s\"',;]+"), r"\1/(name)"),
    (re.compile(r"\b\d{4}-?\d{4}-?\d{4}\b"), "(account)"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), "(address)"),
    (re.compile(r"\b(?:ip|ec2)(?:-\d{1,3}){4}\b"), "(address)"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"), "(mail)"),
]


def scrub(value: Any, environ: Mapping[str, str]) -> Any:
    """Return the value without secrets, account numbers, addresses and names of people: texts, lists and mappings of any
    depth."""
    if isinstance(value, Mapping):
        return {
            str(scrub(key, environ)): "(left out)" if key in _PRIVATE_KEYS and item else scrub(item, environ)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [scrub(item, environ) for item in value]
    return _scrub_text(value, environ) if isinstance(value, str) else value


def _scrub_text(text: str, environ: Mapping[str, str]) -> str:
    text = _replace_values(text, environ, _SECRETS)  # first: a pattern would cut a secret into pieces
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return _replace_values(text, environ, _PERSON)


def _replace_values(text: str, environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        value = environ.get(name, "")
        if value not in _EVERYBODY and len(value) >= 3:
            text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", f"({name})", text)
    return text


def write_evidence(file: Path, evidence: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Write the scrubbed evidence, which may be sent to others. Raises StorageError."""
    write_bytes(file, to_json(scrub(evidence, environ)), mode=0o600)
