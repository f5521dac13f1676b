"""The learner's settings for a Slurm cluster: the key `slurm` of gpucourse.yaml, and the options that a command adds to it.

The classes are plain dataclasses: pydantic checks them in `gpucourse.yaml`, and msgspec stores them in the record of a lab.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from gpucourse.errors import UsageError, suggest
from gpucourse.outside.names import is_shown

PROTECTED = {
    "array": "the exercise sets it",
    "chdir": "every run has its own folder",
    "comment": "destroy finds the course's jobs by it",
    "dependency": "the exercise sets it",
    "error": "the course reads the logs where it puts them",
    "input": "jobs have no input",
    "job-name": "destroy finds the course's jobs by it",
    "nodes": "type --nodes for a run",
    "ntasks": "type --nodes and --procs for a run",
    "ntasks-per-node": "type --procs for a run",
    "output": "the course reads the logs where it puts them",
    "parsable": "the course reads the job's number from the answer",
    "quiet": "the course reads the job's number from the answer",
    "test-only": "type --dry-run for a run",
    "time": "type --timeout for a run",
    "wait": "the command follows the run anyway",
    "wrap": "the course writes the batch file",
}
"""Options of sbatch that only the course may set, each with the reason or with what to type instead."""

OWN_GPU_OPTIONS = frozenset({"gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"})
"""Options of sbatch that request GPUs. If the learner sets one of them, the course requests no GPU itself."""

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}"
_FORMS = {
    "partition": (rf"{_NAME}(,{_NAME})*", "the name of a partition"),
    "cpu_partition": (rf"{_NAME}(,{_NAME})*", "the name of a partition"),
    "account": (_NAME, "the name of an account"),
    "qos": (_NAME, "the name of a QoS"),
    "gpu": (_NAME, "a type of GPU as sinfo -o %G shows it, such as a100"),
    "mem": (r"[0-9]{1,9}[KMGT]?B?", "the memory of each node, such as 32G"),
    "folder": (
        r"(/|~(/|$)|\$[A-Za-z_]|\$\{[A-Za-z_]\w*\})[^\x00-\x1f\x7f'\"`;&|<>()*?\\!#\s]{0,1000}",
        "a folder such as /scratch/me or $SCRATCH",
    ),
}
_OPTION = re.compile(r"[a-z][a-z0-9-]{1,40}")
_MAX_ITEMS, _MAX_TEXT = 64, 1000

Option = str | int | bool
"""The value of an option of sbatch. True is a flag without a value; False removes an option of an earlier layer."""


@dataclass(frozen=True, kw_only=True)
class SlurmContainer:
    """The container in which the command of a job runs: an image for Apptainer, or one for Pyxis (`srun --container-image`)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    apptainer: str = ""
    pyxis: str = ""

    def __post_init__(self) -> None:
        if bool(self.apptainer) == bool(self.pyxis):
            raise ValueError("name one image: apptainer: FILE, or pyxis: IMAGE")
        _check_text("container", self.apptainer or self.pyxis)


@dataclass(frozen=True, kw_only=True)
class SlurmSettings:
    """The settings for one Slurm cluster. An empty value stands for the cluster's default, or for what `deploy` finds.

    `login`: the login node, as plain ssh accepts it. It is empty on the login node itself.
    `partition`, `cpu_partition`: the partitions of jobs with and without a GPU.
    `gpu`: the type of GPU, as in `--gres=gpu:TYPE:1`.
    `options`: other long options of sbatch.
    `setup`: shell lines before the command of each job, such as `module load pytorch`.
    `python`: the command that starts Python in a job.
    `folder`: where the course keeps its files on the cluster. Variables are expanded on the login node.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    login: str = ""
    partition: str = ""
    cpu_partition: str = ""
    account: str = ""
    qos: str = ""
    gpu: str = ""
    cpus_per_gpu: int | None = None
    mem: str = ""
    options: dict[str, Option] = field(default_factory=dict)
    setup: tuple[str, ...] = ()
    python: str = ""
    container: SlurmContainer | None = None
    folder: str = ""

    def __post_init__(self) -> None:
        """Check every value. Raises ValueError, which pydantic and msgspec report with the key."""
        for name, (form, description) in _FORMS.items():
            value = getattr(self, name)
            if value and not re.fullmatch(form, value):
                raise ValueError(f"{name}: must be {description}")
        for name in ("login", "python"):
            _check_text(name, getattr(self, name))
        if self.login.startswith("-") or " " in self.login:
            raise ValueError("login: must be a machine as ssh accepts it, such as me@cluster")
        if self.cpus_per_gpu is not None and not 0 < self.cpus_per_gpu <= 1024:
            raise ValueError("cpus_per_gpu: must be between 1 and 1024")
        if len(self.setup) > _MAX_ITEMS or len(self.options) > _MAX_ITEMS:
            raise ValueError(f"at most {_MAX_ITEMS} options and lines of setup")
        for line in self.setup:
            _check_text("setup", line)
        for name, option in self.options.items():
            _check_option(name, option)
        _check_command(self.python)

    def flags(self, *, gpus: int | None) -> tuple[str, ...]:
        """Return the options that are typed after sbatch or srun. They override the `#SBATCH` lines of a file.

        `gpus`: the GPUs of each node. A job with 0 GPUs goes to `cpu_partition`. With None, the options do not mention GPUs,
        because the file requests them itself.
        """
        partition = (self.cpu_partition or self.partition) if gpus == 0 else self.partition
        words = {"partition": partition, "account": self.account, "qos": self.qos, "mem": self.mem}
        flags = [f"--{name}={value}" for name, value in words.items() if value]
        if gpus and OWN_GPU_OPTIONS.isdisjoint(self.options):
            flags.append(f"--gres=gpu:{self.gpu}:{gpus}" if self.gpu else f"--gres=gpu:{gpus}")
        if gpus and self.cpus_per_gpu:
            flags.append(f"--cpus-per-gpu={self.cpus_per_gpu}")
        for name, value in self.options.items():
            if value is not False and not (gpus == 0 and name in OWN_GPU_OPTIONS):
                flags.append(f"--{name}" if value is True or value == "" else f"--{name}={value}")
        return tuple(flags)

    def write_command(self, module: str) -> str:
        """Return the command that deploys a module's lab with these settings. Settings that cannot be typed are left out."""
        values = {name: getattr(self, name) for name in ("login", "partition", "account", "qos", "gpu")}
        words = [word for name, value in values.items() if value for word in (f"--{name}", value)]
        words += replace(self, partition="", account="", qos="", gpu="").list_words()
        return shlex.join(["gpucourse", "deploy", module, "--target", "slurm", *words])

    def list_words(self) -> list[str]:
        """Return the settings as they are typed after `run`: `--slurm NAME=VALUE` for each that `read_words` accepts."""
        names = ("partition", "cpu_partition", "account", "qos", "gpu", "cpus_per_gpu", "mem", "python")
        settings = [f"{name}={value}" for name in names if (value := getattr(self, name))]
        settings += [f"setup={line}" for line in self.setup]
        settings += [name if value is True else f"{name}={value}" for name, value in self.options.items() if value is not False]
        return [word for setting in settings for word in ("--slurm", setting)]


@dataclass(frozen=True, kw_only=True)
class SlurmClusters(SlurmSettings):
    """The key `slurm` of gpucourse.yaml: the settings of one cluster, or of several by name.

    `clusters`: the settings of each cluster. Settings that a cluster leaves empty come from the keys next to `clusters`.
    `default`: the cluster for commands that name none.
    """

    clusters: dict[str, SlurmSettings] = field(default_factory=dict)
    default: str = ""

    def __post_init__(self) -> None:
        """Check the names of the clusters. Raises ValueError."""
        super().__post_init__()
        if self.default and self.default not in self.clusters:
            raise ValueError(f"default: there is no cluster '{self.default}'.{suggest(self.default, self.clusters)}")
        for name in self.clusters:
            if not re.fullmatch(_NAME, name):
                raise ValueError("clusters: a name may contain letters, digits, dots, dashes and underscores")

    @property
    def common(self) -> SlurmSettings:
        """Return the settings that all clusters share."""
        return SlurmSettings(**{item.name: getattr(self, item.name) for item in fields(SlurmSettings)})

    def choose(self, *, cluster: str = "", login: str = "") -> SlurmSettings:
        """Return the settings of the cluster with that name or that login, otherwise those of the default cluster.

        A login that belongs to no cluster is combined with the common settings. Raises UsageError for an unknown name, or if
        several clusters are named and none is the default.
        """
        if cluster and cluster not in self.clusters:
            names = ", ".join(self.clusters) or "none"
            raise UsageError(
                f"gpucourse.yaml has no Slurm cluster '{cluster}'; it has: {names}.{suggest(cluster, self.clusters)}",
                hint="name it in gpucourse.yaml: slurm: {clusters: {NAME: {login: me@cluster}}}, or type --login me@cluster",
            )
        by_login = next((name for name, settings in self.clusters.items() if login and settings.login == login), "")
        name = cluster or by_login or ("" if login else self.default)
        if not (name or login) and self.clusters:
            if len(self.clusters) > 1:
                names = ", ".join(self.clusters)
                raise UsageError(
                    f"gpucourse.yaml names several Slurm clusters, and none is the default: {names}",
                    hint=f"--cluster {next(iter(self.clusters))}, or slurm: {{default: {next(iter(self.clusters))}}}",
                )
            name = next(iter(self.clusters))
        settings = merge(self.common, self.clusters[name]) if name else self.common
        return merge(settings, SlurmSettings(login=login))


def merge(*layers: SlurmSettings) -> SlurmSettings:
    """Return the settings of all layers. A later layer overrides an earlier one; options are combined by name."""
    merged = SlurmSettings()
    for layer in layers:
        values = {item.name: getattr(layer, item.name) for item in fields(SlurmSettings) if item.name != "options"}
        changes = {name: value for name, value in values.items() if value not in ("", None, ())}
        merged = replace(merged, **changes, options={**merged.options, **layer.options})
    return merged


def read_words(words: Iterable[str]) -> SlurmSettings:
    """Return the settings that were typed as `--slurm NAME=VALUE`: a key of the settings, or a long option of sbatch.

    Raises UsageError for a word in any other form, and for an option that only the course may set.
    """
    values: dict[str, Any] = {}
    options: dict[str, Option] = {}
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        key = name.replace("-", "_")
        if key in {"login", "container", "options", "folder"}:
            raise UsageError(
                f"--slurm {word}: {name} can be set only in gpucourse.yaml, for a whole lab",
                hint=f"slurm: {{{key}: ...}} in gpucourse.yaml, then deploy again",
            )
        if key == "setup":
            values["setup"] = (*values.get("setup", ()), value)
        elif key == "cpus_per_gpu":
            values[key] = int(value) if value.isascii() and value.isdigit() and len(value) < 6 else 0
        elif key in _KEYS:
            values[key] = value
        else:
            options[name] = {"true": True, "false": False}.get(value, value) if equals else True
    try:
        return SlurmSettings(**values, options=options)
    except ValueError as error:
        raise UsageError(
            f"--slurm: {error}", hint="write NAME=VALUE, such as --slurm qos=long or --slurm constraint=ib"
        ) from error


_KEYS = frozenset(item.name for item in fields(SlurmSettings))
_UNABBREVIATED = (*PROTECTED, *sorted(OWN_GPU_OPTIONS), "partition", "account", "qos", "mem", "cpus-per-gpu")


def _check_text(name: str, value: str) -> None:
    if not is_shown(value) or len(value) > _MAX_TEXT:
        raise ValueError(f"{name}: must be one line of at most {_MAX_TEXT} characters, without control characters")


def _check_command(command: str) -> None:
    try:
        words: Sequence[str] = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"python: is not a command: {str(error).lower()}") from error
    if command and not (words and words[0]):
        raise ValueError("python: is not a command: it names no program")


def _check_option(name: str, value: Option) -> None:
    key = name.replace("-", "_")
    if not _OPTION.fullmatch(name):
        raise ValueError(f"options: {name!r} is not a long option of sbatch without its dashes, such as constraint")
    if name in PROTECTED:
        raise ValueError(f"options: {name} belongs to the course: {PROTECTED[name]}")
    if key in _KEYS:
        raise ValueError(f"options: {name} is a key of its own: slurm: {{{key}: ...}}")
    full = next((item for item in _UNABBREVIATED if item.startswith(name) and name not in _UNABBREVIATED), "")
    if full:
        raise ValueError(f"options: sbatch may read {name} as {full}: write the whole name of an option")
    _check_text("options", str(value))
