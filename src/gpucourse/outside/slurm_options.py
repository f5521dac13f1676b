"""Read Slurm's options in a batch file or on the command line of srun, as sbatch and srun do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

_SHORT = {
    "A": "account", "a": "array", "b": "begin", "c": "cpus-per-task", "C": "constraint", "d": "dependency", "D": "chdir",
    "e": "error", "F": "nodefile", "G": "gpus", "i": "input", "J": "job-name", "L": "licenses", "m": "distribution",
    "M": "clusters", "n": "ntasks", "N": "nodes", "o": "output", "p": "partition", "q": "qos", "S": "core-spec", "t": "time",
    "T": "threads", "w": "nodelist", "x": "exclude",
}  # fmt: skip
_SHORT_FLAGS = {
    "E": "preserve-env", "H": "hold", "I": "immediate", "k": "no-kill", "K": "kill-on-bad-exit", "l": "label",
    "O": "overcommit", "Q": "quiet", "s": "oversubscribe", "u": "unbuffered", "v": "verbose", "W": "wait",
    "X": "disable-status", "Z": "no-allocate",
}  # fmt: skip
_WITH_VALUE = {
    *_SHORT.values(), "acctg-freq", "bb", "bbf", "comment", "container", "cores-per-socket", "cpu-bind", "cpu-freq",
    "cpus-per-gpu", "deadline", "delay-boot", "epilog", "export", "export-file", "gid", "gpu-bind", "gpu-freq",
    "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "het-group", "hint", "jobid", "mail-type",
    "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "mpi", "network",
    "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket", "open-mode", "power", "prefer", "priority",
    "profile", "prolog", "relative", "reservation", "signal", "slurmd-debug", "sockets-per-node", "switches", "task-epilog",
    "task-prolog", "thread-spec", "threads-per-core", "time-min", "tmp", "tres-bind", "tres-per-task", "uid", "wckey", "wrap",
    "batch", "container-id", "extra", "segment",
}  # fmt: skip
_FLAGS = {
    *_SHORT_FLAGS.values(), "bcast", "compress", "contiguous", "exact", "exclusive", "get-user-env", "ignore-pbs",
    "kill-on-invalid-dep", "multi-prog", "nice", "no-requeue", "overlap", "parsable", "propagate", "pty",
    "quit-on-interrupt", "reboot", "requeue", "resv-ports", "send-libs",
    "oom-kill-step", "stepmgr", "spread-job", "test-only", "use-min-nodes", "x11",
}  # fmt: skip
"""Options without a value, or with a value only after `=`."""

VALUES_OF_OWN_WORD = frozenset({*(f"-{letter}" for letter in _SHORT), *(f"--{name}" for name in _WITH_VALUE)})
"""The options whose value is the next word."""

_MARK = "#SBATCH"
_NEARLY = re.compile(r"^\s*#+\s*sbatch\s+-", re.IGNORECASE)
_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")


class OptionRefused(Exception):
    """An option that sbatch or srun would refuse. The message is the reason.

    `line`: the option's line number in the file, or 0 for a command line.
    """

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


@dataclass
class SlurmOptions:
    """Options by their long names, each with its last value. A flag has the value "".

    `command`: the command after the options.
    `unread`: the lines with #SBATCH below the first command, each with its number.
    `nearly`: the lines that resemble #SBATCH but are only comments for sbatch, each with its number.
    """

    values: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    unread: list[tuple[int, str]] = field(default_factory=list)
    nearly: list[tuple[int, str]] = field(default_factory=list)

    @property
    def nodes(self) -> int:
        """Return the requested number of machines, at least one (sbatch refuses 0). For a range, return its lower end."""
        if nodes := self.number("nodes"):
            return nodes
        tasks, per_node = self.number("ntasks"), self.number("ntasks-per-node")
        return -(-tasks // per_node) if tasks and per_node else 1

    @property
    def tasks(self) -> int:
        """Return how many processes srun will start in all."""
        per_node = self.number("ntasks-per-node")
        return self.number("ntasks") or self.nodes * (per_node or 1)

    @property
    def gpus(self) -> int:
        """Return the number of GPUs of each machine. A total number, or a number for each process, is divided among the
        machines."""
        gres = self.values.get("gres", "")
        match = re.search(r"(?:^|,)(?:gres[:/])?gpu(?::[A-Za-z][\w.-]*)?(?:[:=](\d+))?(?:,|$|\()", gres)
        if match:
            return int(match[1] or 1)
        if (per_node := self.number("gpus-per-node")) is not None:
            return per_node
        if (per_task := self.number("gpus-per-task")) is not None:
            return per_task * self.tasks // self.nodes
        return (self.number("gpus") or 0) // self.nodes

    @property
    def seconds(self) -> int | None:
        """Return the time limit in seconds, or None if there is none. Raises OptionRefused if its value is not a time."""
        text = self.values.get("time")
        if text is None:
            return None
        match = _TIME.fullmatch(text)
        if match is None:
            raise OptionRefused(f"--time={text} is not a time: minutes, hours:minutes:seconds, or days-hours")
        days, first, second, third = (int(part) if part is not None else None for part in match.groups())
        if days is not None:  # days-hours[:minutes[:seconds]]
            return days * 86400 + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
        if third is not None:
            return (first or 0) * 3600 + (second or 0) * 60 + third
        return (first or 0) * 60 + (second or 0)

    @property
    def array(self) -> tuple[tuple[int, ...], int]:
        """Return the numbers of an array's tasks in order, and how many may run at the same time, or 0 if there is no limit.

        Without the option, there are no numbers. Raises OptionRefused if the option's value is not an array.
        """
        text = self.values.get("array")
        if text is None:
            return (), 0
        spelled, _, limit = text.partition("%")
        numbers: set[int] = set()
        for part in spelled.split(","):
            match = re.fullmatch(r"\[?(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6}))?)?\]?", part)
            if match is None or (limit and not limit.isdigit()) or int(match[2] or match[1]) < int(match[1]):
                raise OptionRefused(f"--array={text} is not an array: numbers as in 0-3, 0-6:2 or 0,1,5, then at most %NUMBER")
            low, high, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            numbers |= set(range(low, high + 1, max(1, step)))
        return tuple(sorted(numbers)), int(limit or 0)

    def number(self, name: str) -> int | None:
        """Return the whole number in an option's value (2 for `2-4`, 4 for `a100:4`), or None if there is no number."""
        match = re.fullmatch(r"(?:[A-Za-z]\w*:)?(\d{1,6})(?:-\d+)?", self.values.get(name, ""))
        return int(match[1]) if match else None


def read_words(words: Sequence[str], program: str = "srun") -> SlurmOptions:
    """Read the options of a command line, up to its command. Raises OptionRefused."""
    options, remaining = SlurmOptions(), list(words)
    while remaining and remaining[0].startswith("-") and remaining[0] != "-":
        word = remaining.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            _read_long(word[2:], remaining, options, program)
        else:
            _read_short(word[1:], remaining, options, program)
    options.command = tuple(remaining)
    return options


def read_file(text: str) -> SlurmOptions:
    """Read the options of a batch file. Raises OptionRefused if sbatch would refuse the file."""
    if not text.startswith("#!"):
        raise OptionRefused("the first line must begin with #! and the path of a program, as in #!/bin/bash", 1)
    if "\r\n" in text:
        raise OptionRefused("the file has Windows line endings (DOS line breaks): save it with Linux line endings", 1)
    return _read_lines(text, _read_line)


def read_sbatch_options(text: str) -> SlurmOptions:
    """Read the options of a batch file. A line with an error is skipped, because sbatch itself reports the error."""

    def read(line: str, number: int, options: SlurmOptions) -> None:
        with suppress(OptionRefused):
            _read_line(line, number, options)

    return _read_lines(text, read)


def find_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with #SBATCH that sbatch reads, each with its number. They are above the first command."""
    lines: list[tuple[int, str]] = []
    _read_lines(text, lambda line, number, _options: lines.append((number, line)))
    return lines


def _read_lines(text: str, read: Callable[[str, int, SlurmOptions], None]) -> SlurmOptions:
    options, in_head = SlurmOptions(), True
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(_MARK):
            if in_head:
                read(line, number, options)
            else:
                options.unread.append((number, line))
        elif _NEARLY.match(line):
            options.nearly.append((number, line.strip()))
        elif line.strip() and not line.lstrip().startswith("#"):
            in_head = False
    return options


def expand(pattern: str, values: dict[str, str]) -> str:
    """Return the name of a file with Slurm's placeholders filled in.

    `values`: the replacement for each letter, such as the j of `%j`. A number before the letter is the width.
    """

    def put_in(match: re.Match[str]) -> str:
        if match[2] == "%":
            return "%"
        value = values.get(match[2])
        return match[0] if value is None else value.zfill(int(match[1] or 0)) if value.isdigit() else value

    return re.sub(r"%(\d*)([A-Za-z%])", put_in, pattern)


def _read_line(line: str, number: int, options: SlurmOptions) -> None:
    try:
        words = shlex.split(line[len(_MARK) :], comments=True)
    except ValueError as error:
        raise OptionRefused(f"{line}: {error}", number) from None
    try:
        read = read_words(words, "sbatch")
    except OptionRefused as error:
        raise OptionRefused(str(error), number) from None
    if read.command:
        raise OptionRefused(
            f"{line}: sbatch does not know what to do with '{read.command[0]}'; put your own comments after a #", number
        )
    options.values.update(read.values)


def _read_long(word: str, next_words: list[str], options: SlurmOptions, program: str) -> None:
    beginning, equals, value = word.partition("=")
    names = sorted(name for name in _WITH_VALUE | _FLAGS if name.startswith(beginning))
    name = beginning if beginning in names else names[0] if len(names) == 1 else ""
    if not name:
        raise OptionRefused(
            f"{program} has no option --{beginning}" if not names else f"--{beginning} is short for several options"
        )
    if name in _WITH_VALUE and not equals:
        if not next_words:
            raise OptionRefused(f"--{name} needs a value")
        value = next_words.pop(0)
    options.values[name] = value


def _read_short(letters: str, next_words: list[str], options: SlurmOptions, program: str) -> None:
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter in _SHORT:
            if not letters and not next_words:
                raise OptionRefused(f"-{letter} needs a value")
            options.values[_SHORT[letter]] = letters or next_words.pop(0)
            return
        if letter not in _SHORT_FLAGS:
            raise OptionRefused(f"{program} has no option -{letter}")
        options.values[_SHORT_FLAGS[letter]] = ""
        if letter in "IKWk":  # these may have a value, which then follows directly
            return
