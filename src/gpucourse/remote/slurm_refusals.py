"""The error messages of Slurm's commands. The table maps each to a class of error, its meaning in our words, and a remedy.

A message that is not in the table is shown as Slurm wrote it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpucourse.errors import GpucourseError, InfrastructureError, MissingError, UsageError
from gpucourse.model.node import Node
from gpucourse.outside.names import printable


@dataclass(frozen=True)
class _KnownError:
    """An error message of Slurm.

    `words`: a pattern that matches the message.
    `error`: the class of error.
    `what`: what happened.
    `hint`: what to type next.
    """

    words: str
    error: type[GpucourseError]
    what: str
    hint: str


_SSH = "gpucourse ssh 2 -- "
_TABLE = (
    _KnownError(
        r"munged is gone|[Mm]unge encode failed|munge.*[Ss]ocket|Failed to access .*munge|authentication plugin.*munge",
        InfrastructureError,
        "munged does not answer, so Slurm's commands cannot prove who is asking",
        "if the lab is your own, gpucourse deploy 2 restarts it; otherwise, run systemctl restart munge",
    ),
    _KnownError(
        r"[Ee]xpired credential|[Rr]ewound credential|munge.*(clock|time)",
        InfrastructureError,
        "munge refuses a message because the clocks of two machines differ by more than five minutes",
        "compare `date` on both, and let chrony or ntpd set them (timedatectl set-ntp true)",
    ),
    _KnownError(
        r"[Ii]nvalid credential|Munge decode failed|munge_decode|Protocol authentication error|Zero Bytes were transmitted",
        InfrastructureError,
        "munge refuses a message: two machines do not have the same munge.key, or their clocks differ by minutes",
        "compare `sha256sum /etc/munge/munge.key` and `date` on both; gpucourse deploy 2 repairs a lab of your own",
    ),
    _KnownError(
        r"temporarily unable to accept job",
        InfrastructureError,
        "the cluster already has the maximum number of jobs (MaxJobCount)",
        "gpucourse ssh 2 -- squeue shows them; when some have ended, type the command again",
    ),
    _KnownError(
        r"Unable to contact slurm controller|Connection refused|Unable to establish configuration|[Ss]ocket timed out|"
        r"Resource temporarily unavailable|did not answer within",
        InfrastructureError,
        "Slurm's controller (slurmctld) does not answer. Running jobs continue without it",
        "if the lab is your own, gpucourse deploy 2 restarts it; otherwise, run systemctl status slurmctld on the head",
    ),
    _KnownError(
        r"command not found|cannot start s(batch|info|queue|cancel)",
        MissingError,
        "Slurm's commands were not found",
        "--launcher slurm needs a cluster with Slurm: gpucourse deploy 2",
    ),
    _KnownError(
        r"[Ii]nvalid partition",
        UsageError,
        "there is no such partition",
        "gpucourse ssh 2 -- sinfo lists them; then --set partition=NAME in module 2, or --slurm partition=NAME on a cluster of "
        "the target slurm",
    ),
    _KnownError(
        r"Invalid node name specified|Invalid feature specification|Invalid generic resource|Invalid license|"
        r"[Rr]equested reservation is invalid",
        UsageError,
        "the job asks by name for something that this cluster does not have (a node, a feature, a kind of GPU, a license or a "
        "reservation)",
        "gpucourse ssh 2 -- \"sinfo -N -o '%N %G %f'\" shows what its nodes have; leave the line out, or name one of these",
    ),
    _KnownError(
        r"Memory specification can not be satisfied",
        UsageError,
        "the job asks for more memory than any node of this cluster has",
        "gpucourse ssh 2 -- \"sinfo -N -o '%N %m'\" shows what each node has, in MiB; use a smaller --mem or --mem-per-cpu",
    ),
    _KnownError(
        r"Node count specification invalid|[Mm]ore (nodes|processors) requested|Requested node configuration is not available",
        UsageError,
        "no set of nodes of this cluster can ever provide what the job asks for (nodes, GPUs or cores)",
        "gpucourse ssh 2 -- \"sinfo -N -o '%N %G %c'\" shows what each node has",
    ),
    _KnownError(
        r"[Rr]equested time limit is invalid|time limit.*exceed",
        UsageError,
        "the partition does not allow this time limit",
        "--timeout 10m asks for less; gpucourse ssh 2 -- \"sinfo -o '%P %l'\" shows the limits",
    ),
    _KnownError(
        r"(Assoc|QOS)Max(Submit)?Job\w*",
        UsageError,
        "you already have the maximum number of jobs that your account or QoS allows",
        "submit fewer at a time (in 2.1: --set jobs=2; an array: fewer values), or wait until some of them have ended",
    ),
    _KnownError(
        r"[Ii]nvalid account|Invalid qos|Job violates accounting|(Assoc|QOS)(Max|Grp)\w+",
        UsageError,
        "the cluster's accounting does not let you submit this",
        "sacctmgr show assoc user=$USER on the cluster shows your accounts and QoS; name one: --slurm account=NAME or "
        "--slurm qos=NAME for a run, or the key slurm in gpucourse.yaml. If you have none, ask the administrator",
    ),
    _KnownError(
        r"Invalid job array specification",
        UsageError,
        "the value of --array is not an array, or has a number that this cluster does not accept: the highest is its "
        "MaxArraySize minus one",
        "gpucourse ssh 2 -- 'scontrol show config | grep MaxArraySize' shows it; use a smaller --array, or several files",
    ),
    _KnownError(
        r"unrecognized option|[Ii]nvalid .* specification|does not look like a batch script|DOS line breaks|Unmatched|"
        r"Invalid directive|not a valid",
        UsageError,
        "sbatch does not understand the file",
        "fix the line that it names, and type the command again; with --dry-run you see the file that is submitted",
    ),
    _KnownError(
        r"scancel was accepted",
        InfrastructureError,
        "the job's processes do not end: its node does not answer, or is busy with input and output",
        "sinfo -R on the head names nodes that are down; gpucourse cancel RUN tries again",
    ),
)


def explain(node: Node, message: str) -> GpucourseError:
    """Return the error for a message of Slurm on `node`."""
    words = printable(" ".join(message.replace("\\n", "\n").split()))  # a site's own message has its line breaks escaped
    for entry in _TABLE:
        if re.search(entry.words, message):
            kind, hint = entry.error, entry.hint
            if node.mode == "slurm":  # a cluster of other people: it lacks the thing, and `gpucourse ssh 2` does not reach it
                kind = MissingError if kind is UsageError else kind
                hint = hint.replace(_SSH, f"{' '.join(node.ssh_words)} -- " if node.ssh_words else "sh -c ")
            return kind(f"{entry.what} ({node.label} said: {words})", hint=hint)
    return UsageError(f"{node.label}: Slurm refused: {words}", hint="the same command with --dry-run shows what is submitted")
