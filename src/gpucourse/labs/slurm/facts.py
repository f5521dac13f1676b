"""Query a Slurm cluster about itself and the learner's account, in one request. Nothing is changed there."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpucourse.errors import InfrastructureError, MissingError
from gpucourse.model.slurm_facts import MAX_PARTITIONS, PartitionFacts, SlurmFacts
from gpucourse.model.slurm_settings import SlurmSettings
from gpucourse.outside.names import printable
from gpucourse.ports import Link
from gpucourse.remote import answers
from gpucourse.remote.agent.slurm import words
from gpucourse.remote.patience import ANSWER_S

PLACES = 'PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin:/usr/local/slurm/bin:/opt/slurm/current/bin"'
"""A PATH that has Slurm's commands even if the login's start files are not read."""
PROGRAMS = ("sbatch", "squeue", "sinfo", "scancel", "scontrol")
_NO_SLURM, _NO_FOLDER = 91, 92
_MAX_LINES, _MAX_WORDS = 20_000, 100
# Each part begins with a line that no program prints by accident. A part that fails is empty, except for sinfo.
_CONFIG = ("ClusterName", "SLURM_VERSION", "AccountingStorageEnforce", "MinJobAge")
_ASK = """
{places}; export PATH
part() {{ printf '\\n%s %s\\n' {mark} "$1"; }}
for name in {programs}; do command -v "$name" >/dev/null || {{ echo "$name" >&2; exit {no_slurm}; }}; done
part sinfo; sinfo -h -a -o '%P|%a|%l|%D|%c|%G|%T' || exit
part partitions; scontrol -o show partition 2>/dev/null
part config; scontrol show config 2>/dev/null | grep -E '^({config}) '
part default; sacctmgr -nP show user "$(id -un)" format=DefaultAccount 2>/dev/null
part accounts; sacctmgr -nP show assoc user="$(id -un)" format=Account,QOS 2>/dev/null ||
  sshare -nPU -o Account 2>/dev/null
part login; printf '%s\\n' "${{SBATCH_ACCOUNT:-${{SLURM_ACCOUNT:-}}}}"
part sacct; sacct -n -X -S now-1minutes -o JobID >/dev/null 2>&1 && echo yes
part modules
bash -lc 'module -t avail; module avail' 2>&1 </dev/null | tr -s ' \\t' '\\n\\n' | grep -iE '^[^/]*(torch|conda|python|cuda)' |
  sort -u | head -n 40
part folder; {folder}
"""
_PLACE = "@gpucourse-folder:"
_FIELD = re.compile(r"(?:^| )([A-Za-z]+)=(\S*)")


def look(link: Link, settings: SlurmSettings) -> SlurmFacts:
    """Return the facts about the cluster of this login node. Nothing is changed there.

    Raises MissingError if the machine has no Slurm or lacks the folder in the settings, and InfrastructureError if Slurm does
    not answer.
    """
    mark = f"part-{secrets.token_hex(8)}"
    command = _ASK.format(
        places=PLACES,
        config="|".join(_CONFIG),
        mark=mark,
        programs=" ".join(PROGRAMS),
        no_slurm=_NO_SLURM,
        folder=_write_folder_test(settings.folder),
    )
    result = link.run(command, timeout_s=ANSWER_S)
    name, message = link.node.label, printable(" ".join(result.stderr.decode("utf-8", "replace").split())[-300:])
    if result.code == _NO_SLURM:
        raise MissingError(
            f"{name} has no Slurm: there is no {message or 'sbatch'}",
            hint="name the login node of a cluster; for a machine without Slurm: --target hosts --hosts " + name,
        )
    if result.code == _NO_FOLDER:
        raise MissingError(
            f"{name} has no folder {settings.folder} that you may write to ({message or 'the variable is not set there'})",
            hint="name another: slurm: {folder: $SCRATCH} in gpucourse.yaml, or leave it out for your home folder",
        )
    if not result.ok:
        raise InfrastructureError(
            f"{name}: Slurm does not answer ({message})",
            hint=f"{f'ssh {settings.login} sinfo' if settings.login else 'sinfo'} has to answer first; if another machine is "
            "the login node: --login me@cluster",
        )
    return read_facts(link, result.stdout.decode("utf-8", "replace"), mark)


def read_facts(link: Link, text: str, mark: str) -> SlurmFacts:
    """Return the facts in the answer to `look`. Raises NodeUntrusted if they cannot be used."""
    parts = _split(text, mark)
    try:
        config = dict(_read_pairs(parts.get("config", ())))
        rows = [line.split("|") for line in parts.get("accounts", ()) if line.strip()]
        default = [*parts.get("login", ()), *parts.get("default", ())]
        names = [*default, *(row[0] for row in rows)]
        return SlurmFacts(
            cluster=config.get("ClusterName", ""),
            version=config.get("SLURM_VERSION", ""),
            partitions=read_partitions(parts.get("sinfo", ()), parts.get("partitions", ())),
            enforced=_words(config.get("AccountingStorageEnforce", "").split(",")),
            accounts=_words(names),
            qos=_words(name for row in rows if len(row) > 1 for name in row[1].split(",")),
            has_sacct="yes" in parts.get("sacct", ()),
            min_job_age_s=_number(config.get("MinJobAge", "").partition(" ")[0]),
            modules=_words(line.partition("(")[0].rstrip("/:") for line in parts.get("modules", ()) if "/" in line),
            folder=answers.folder("".join(parts.get("folder", ())[:1])) if parts.get("folder") else "",
        )
    except ValueError as error:
        raise answers.make_untrusted_error(link.node.label, "Slurm's description of its cluster", error) from error


def read_partitions(sinfo: Iterable[str], scontrol: Iterable[str]) -> list[PartitionFacts]:
    """Return the partitions in the output of sinfo (one line for each group of identical nodes) and of `scontrol -o show
    partition`.
    """
    partitions: dict[str, PartitionFacts] = {}
    for line in sinfo:
        fields = line.strip().split("|")
        if len(fields) != 7:
            continue
        name, up, limit, count, cores, gres, state = fields
        facts = partitions.setdefault(name.rstrip("*"), PartitionFacts(name=name.rstrip("*")))
        facts.default, facts.open, facts.max_s = name.endswith("*"), up == "up", words.seconds(limit)
        number, gpus = _number(count) or 0, words.gpus(gres)
        facts.usable += number if words.usable(state) else 0
        facts.nodes, facts.gpu_nodes = facts.nodes + number, facts.gpu_nodes + (number if gpus else 0)
        facts.gpus, facts.cores = max(facts.gpus, gpus), max(facts.cores, _number(cores.rstrip("+")) or 0)
        for kind in _words(words.gpu_types(gres)):
            facts.gpu_types[kind] = facts.gpu_types.get(kind, 0) + number
    for line in scontrol:
        fields_by_name = dict(_FIELD.findall(line))
        if (partition := partitions.get(fields_by_name.get("PartitionName", ""))) is not None:
            partition.accounts = _list_names(fields_by_name.get("AllowAccounts", ""))
            partition.denied_accounts = _list_names(fields_by_name.get("DenyAccounts", ""))
            partition.qos = _list_names(fields_by_name.get("AllowQos", ""))
            partition.max_nodes = _number(fields_by_name.get("MaxNodes", ""))
    if len(partitions) > MAX_PARTITIONS:
        raise ValueError(f"more than {MAX_PARTITIONS} partitions")
    return [replace(partition) for partition in partitions.values()]  # `replace` checks the values


def _write_folder_test(folder: str) -> str:
    """Return the shell command that prints the absolute path of the folder, and fails if the folder cannot be written to."""
    if not folder:
        return ":"
    # `folder` has no character that is special between double quotes, except the dollar sign of a variable. A cluster may set
    # such variables only for login shells, whose start files may print something first.
    path = f'"$HOME"{shlex.quote(folder[1:])}' if folder.startswith("~") else f'"{folder}"'
    if "$" in folder:
        path = "$(bash -lc " + shlex.quote(f'set -u; printf "{_PLACE}%s" "{folder}"') + " </dev/null 2>/dev/null)"
        path = f'{path}; place="${{place##*{_PLACE}}}"'
    return f'place={path}; test -n "$place" && cd -- "$place" && test -w . || {{ echo "$place" >&2; exit {_NO_FOLDER}; }}; pwd'


def _split(text: str, mark: str) -> Mapping[str, list[str]]:
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines()[:_MAX_LINES]:
        if line.startswith(mark + " "):
            lines = parts.setdefault(line[len(mark) + 1 :].strip(), [])
        elif line.strip():
            lines.append(line)
    return parts


def _read_pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, value = line.partition("=")
        yield name.strip(), printable(value.strip(), 200)


def _words(texts: Iterable[str]) -> tuple[str, ...]:
    cleaned = (printable(text.strip(), 100) for text in texts)
    return tuple(dict.fromkeys(text for text in cleaned if text and text.lower() not in {"none", "(null)"}))[:_MAX_WORDS]


def _list_names(text: str) -> tuple[str, ...]:
    return () if text in {"", "ALL", "(null)", "N/A"} else _words(text.split(","))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
