"""Find the route by which plain `ssh` reaches a machine that already exists, with the learner's own configuration, keys and
known hosts.

OpenSSH's client itself interprets its configuration (`ssh -G`) and its known hosts (`ssh-keygen -F`).
"""

from __future__ import annotations

import getpass
import os
import pwd
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpucourse.errors import MissingError, UsageError

_KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")  # best first
_HOST = re.compile(
    r"^(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<name>[^@:\s\[\]-][^@:\s\[\]]*))(?::(?P<port>\d+))?$"
)
ASK_S = 20.0
"""The time limit for ssh or ssh-keygen to read its files and answer."""


@dataclass(frozen=True, kw_only=True)
class SshRoute:
    """The route to a machine.

    `typed`: what the learner typed.
    `keys`: the learner's private keys that the machine may accept.
    `known_as`: the machine's name in the learner's known hosts.
    `host_keys`: its keys there (`ssh-ed25519 AAAA...`). There are several if machines share the name, and none if the name is
    unknown.
    """

    typed: str
    address: str
    port: int
    user: str
    proxy: str = ""
    keys: tuple[Path, ...] = ()
    host_keys: tuple[str, ...] = ()
    known_as: str = ""


@dataclass(frozen=True, kw_only=True)
class SshCommand:
    """The ssh command that reaches a machine.

    `program`: the path of ssh.
    `host`: the options and the name of the machine: the last words before a command that the machine runs.
    `host_words`: the same as a person would type them.
    `controls`: the sockets at which a connection to the machine may be open (ControlPath).
    `opening`, `ending`: what to type to open such a connection, and to end it.
    """

    program: str
    host: tuple[str, ...]
    host_words: tuple[str, ...]
    controls: tuple[str, ...]
    opening: str
    ending: str


def find_ssh_command(text: str, environ: Mapping[str, str]) -> SshCommand:
    """Return the ssh command for `user@name:port`, with the learner's SSH configuration. Raises the errors of
    `find_ssh_route`."""
    name, user, port = _split(text)
    home = _find_home(environ)
    options = _read_ssh_config(name, user, port, home)
    words = (*(("-p", str(port)) if port else ()), f"{user}@{name}" if user else name)
    named = options.get("controlpath", ["none"])[0]
    ours = f"{'~' if home == _get_registered_home() else home}/.ssh/gpucourse-%C"
    has_own = named != "none" and options.get("controlmaster", ["false"])[0] != "false"
    opening = ("-fN",) if has_own else ("-fNM", "-S", ours)
    return SshCommand(
        program=find_program("ssh"),
        host=(*_config_words(home), *words[:-1], "--", words[-1]),
        host_words=words,
        controls=(*(() if named == "none" else (named,)), ours),
        opening=shlex.join(["ssh", *opening, *words]),
        ending=shlex.join(["ssh", "-O", "exit", *(() if has_own else ("-S", ours)), *words]),
    )


def find_ssh_route(text: str, environ: Mapping[str, str]) -> SshRoute:
    """Return the route to `user@name:port`. The learner's SSH configuration supplies everything that is not typed.

    Raises UsageError if the text does not have that form, or if the known hosts revoke the machine's key. Raises MissingError
    if OpenSSH's client is missing, or if the user ID has no account.
    """
    typed_name, user, port = _split(text)
    home = _find_home(environ)
    options = _read_ssh_config(typed_name, user, port, home)
    name = options.get("hostname", [typed_name])[0]
    number = int(options.get("port", ["22"])[0])
    alias = options.get("hostkeyalias", [""])[0]
    files = _list_known_hosts_files(options.get("userknownhostsfile", [""])[0], home)
    files += [Path(file) for line in options.get("globalknownhostsfile", []) for file in line.split()]
    known_as = alias or (name if number == 22 else f"[{name}]:{number}")
    keys = [_expand_home(file, home) for file in options.get("identityfile", [])]
    return SshRoute(
        typed=text,
        address=name,
        port=number,
        user=options.get("user", [getpass.getuser()])[0],
        proxy=_proxy(options),
        keys=tuple(key for key in keys if key.is_file()),
        host_keys=_find_known_keys(known_as, files),
        known_as=known_as,
    )


def _split(text: str) -> tuple[str, str | None, int | None]:
    """Return the name, the user and the port in `user@name:port`. Raises UsageError if the text does not have that form."""
    match = _HOST.fullmatch(text)
    port = int(match["port"]) if match and match["port"] else None
    if match is None or (port is not None and not 0 < port < 65536):
        raise UsageError(
            f"'{text}' is not the name of a machine", hint="write machines as me@gpu1 or me@gpu1:2222, separated by commas"
        )
    return match["v6"] or match["name"], match["user"], port


def _find_home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or _get_registered_home())


def _config_words(home: Path) -> tuple[str, ...]:
    """Return the options with which ssh reads the configuration in this home folder."""
    if home == _get_registered_home():
        return ()
    config = name_own_config(home)
    return ("-F", str(config) if config.is_file() else "none")


def _find_known_keys(host: str, files: Iterable[Path]) -> tuple[str, ...]:
    """Return the host keys of `name` or `[name]:port` in these files. Only keys of the best kind are returned, because OpenSSH
    accepts any of these.

    Raises UsageError if a key is marked as revoked.
    """
    keygen = find_program("ssh-keygen")
    keys: dict[str, list[str]] = {}
    for file in files:
        if not file.is_file():
            continue
        result = subprocess.run(
            [keygen, "-F", host, "-f", str(file)], capture_output=True, text=True, timeout=ASK_S, check=False
        )
        for line in result.stdout.splitlines():
            words = line.split()
            if words[:1] == ["@revoked"]:
                raise UsageError(f"{file} revokes the key of {host}", hint=f"ssh-keygen -F '{host}' -f '{file}' shows it")
            if len(words) >= 3 and not words[0].startswith(("#", "@")):
                keys.setdefault(words[1], []).append(f"{words[1]} {words[2]}")
    return next((tuple(dict.fromkeys(keys[kind])) for kind in _KINDS if kind in keys), ())


def name_own_config(home: Path) -> Path:
    """Return the path of the SSH configuration in this home folder."""
    return home / ".ssh" / "config"


def _read_ssh_config(name: str, user: str | None, port: int | None, home: Path) -> dict[str, list[str]]:
    """Return the output of `ssh -G`: each option in lower case, with its values."""
    words = [find_program("ssh"), "-G", *_config_words(home)]
    words += [*(("-l", user) if user else ()), *(("-p", str(port)) if port else ()), "--", name]
    result = subprocess.run(words, capture_output=True, text=True, timeout=ASK_S, check=False)
    if result.returncode != 0:
        raise UsageError(f"ssh does not understand its configuration: {result.stderr.strip()}", hint=f"ssh -G {name}")
    options: dict[str, list[str]] = {}
    for line in result.stdout.splitlines():
        option, _, value = line.partition(" ")
        options.setdefault(option.lower(), []).append(value)
    return options


def _proxy(options: Mapping[str, list[str]]) -> str:
    command = options.get("proxycommand", ["none"])[0]
    if command != "none":
        return command
    jump = options.get("proxyjump", ["none"])[0]
    if jump == "none":
        return ""
    *earlier_jumps, last = jump.split(",")
    through = f"-J {','.join(earlier_jumps)} " if earlier_jumps else ""
    return f"ssh -o BatchMode=yes {through}-W [%h]:%p {last}"


def _list_known_hosts_files(line: str, home: Path) -> list[Path]:
    """Return the learner's known-hosts files. Instead of OpenSSH's two default files, which are in the account's registered
    home folder, return the files of the same names in `home`."""
    folder = _get_registered_home() / ".ssh"
    if line == f"{folder}/known_hosts {folder}/known_hosts2":
        return [home / ".ssh" / name for name in ("known_hosts", "known_hosts2")]
    return [_expand_home(file, home) for file in line.split()]


def _expand_home(file: str, home: Path) -> Path:
    text = file.strip('"')
    return home / text[2:] if text.startswith("~/") else Path(text)


def find_program(name: str) -> str:
    """Return the path of a program of OpenSSH's client. Raises MissingError if it is not installed."""
    program = shutil.which(name)
    if program is None:
        raise MissingError(f"OpenSSH's client ({name}) is not installed", hint="install it: apt install openssh-client")
    return program


def _get_registered_home() -> Path:
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        message = f"user {os.getuid()} has no account on this computer, and OpenSSH works only for users that have one"
        raise MissingError(message, hint="type this as a user with an account (getent passwd)") from error
