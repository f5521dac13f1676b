"""Find the lines of a log that say how its process ended, among the lines that the script printed while it ran.

A script may print anything, such as "CUDA out of memory, trying 16", and continue. So signs are searched for in three places
only: the last traceback with the lines after it, lines that torch, NCCL, bash, Slurm and the C++ runtime write themselves, and
the very end.

A launcher that shares a log with its ranks adds a traceback that only says that a rank failed. Such a traceback is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Literal

LABEL = r"(?:\x1b\[[0-9;]*m)*(?:\[(?!rank)[A-Za-z]+\d+\]:|\d+: )?(?:\[rank\d+\]: ?)?"
"""The label before a rank's line: torchrun's `[default0]:`, srun's `0: `, and torch's `[rank0]: `."""

_PREFIX = re.compile(LABEL)
_HEADER = "Traceback (most recent call last)"
_IGNORED = "Exception ignored in"
_CHAIN = re.compile(r"During handling of the above exception|The above exception was the direct cause")
_OF_LAUNCHER = re.compile(r"(?:[\w.]*\.)?(?:ChildFailedError|CalledProcessError|SignalException)\b")
_COMMAND = re.compile(r"(?:[\w.]*\.)?CalledProcessError\b")
_FRAME_OF_TORCHRUN = re.compile(r'torch/distributed/(?:run|elastic/\S+)\.py", line ')
_NESTED = re.compile(r"traceback\s*: Traceback")  # a rank's traceback in a launcher's report
_RULE = "=" * 20  # torchrun frames its summary with longer lines
OF_SLURM = re.compile(r"(?:srun|slurmstepd\S*): ")
"""The beginning of a line that Slurm's own commands write."""

_LIBRARY = re.compile(
    r"""
      \[[WEF](?:\d{3,4})?[ ][^\]]*\.(?:cpp|cc|hpp|h):\d+\]        # torch, in C++: [E1121 09:42:31.9 socket.cpp:1028]
    | [WEF]\d{4}[ ][\d:.]+[ ][^\]]*\.py:\d+\]                    # torchrun
    | (?:\[\S*\][ ]?)?\S+:\d+:\d+[ ]\[-?\d+\][ ](?:\S+[ ])?NCCL[ ]   # NCCL: node0:412:498 [0] init.cc:42 NCCL WARN
    | [^\s:]+:[ ](?:line[ ]\d+:[ ]|\d+:[ ]\S+:[ ]not[ ]found)      # bash and dash, about a script
    | (?:srun|slurmstepd\S*):[ ]
    | terminate[ ]called | [ ]*what\(\): | Fatal[ ]Python[ ]error
    """,
    re.VERBOSE,
)
_OF_A_STACK = re.compile(
    r"frame #\d+|Exception raised from|<omitting python frames>|~*\^+~*$|[│╭╰]"
)  # the last alternative matches the lines of rich's box
_ERROR_LINE = re.compile(
    r"(?:\S+: )?(?:[A-Za-z_][\w.]*(?:[Ee]rror|Exception)|[Ee]rror|ERROR|[Ff]atal|FATAL|ncclInvalidUsage)\b"
    r"|[^:\n]{1,80}: error: |(?:In '[^']+': )?(?:Could not|Cannot|Unable to|Failed to)\b|\S+: can't open file"
    r"|Primary config (?:directory|module)\b"
)
_ERROR = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*(?:[Ee]rror|Exception|Exit|Interrupt|Warning))(?:: (?P<what>.*))?$")
_ABRUPT = re.compile(
    r"CUDA|HIP|MPS|NCCL|nccl|[Gg]loo|cu[A-Z]|\[enforce|DataLoader|Address already|Connection |No space|Disk quota|Bus error"
    r"|Killed|make(?:\[\d+\])?: |rank \d+ is process"
)
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)|│ (?P<rich>\S+\.py):(?P<at>\d+) in ')
_INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python3|^<|/bin/[^/.]+$")
_ENDING = 8
"""How many of the last lines of a log without a traceback may say how the process ended."""
_LONG_ENDING = 40
_HYDRA = "HYDRA_FULL_ERROR=1"
"""hydra prints no traceback. It prints its message, then the available options and, in the last line, how to get a
traceback."""
_AFTERWARDS = {True: 60, False: 3}
"""The number of lines that may follow a traceback that ended its process. If more lines follow, the process had continued."""

Level = Literal["error", "warning", "info"]

_SHOWN_ERROR = re.compile(
    r"""
      (?:\S+:[ ])?(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?::|$)     # the last line of a traceback
    | (?:[Ee]rror|[Ff]atal(?:[ ][Ee]rror)?|fatal[ ]error):[ ] | [^:\n]{1,80}:[ ](?:fatal[ ])?error:[ ]
    | (?:.{0,80}[^\w.])?(?:ERROR|CRITICAL|FATAL)(?:[^\w.]|$)       # the level of a logger
    | \[[EF](?:\d{3,4})?[ ][^\]]*\.(?:cpp|cc|hpp|h):\d+\] | [EF]\d{4}[ ][\d:.]+[ ]
    | [^\s:]+:[ ](?:line[ ]\d+:[ ]|\d+:[ ]\S+:[ ]not[ ]found)
    | terminate[ ]called | [ ]*what\(\): | Fatal[ ]Python[ ]error | (?:Segmentation[ ]fault|Bus[ ]error|Killed|Aborted)\b
    """,
    re.VERBOSE,
)
_SHOWN_WARNING = re.compile(
    r"""
      (?:.{0,200}[^\w.])?(?:WARN|WARNING|[A-Z]\w*Warning)(?:[^\w.]|$) | [Ww]arning:[ ] | [^:\n]{1,80}:[ ]warning:[ ]
    | \[W(?:\d{3,4})?[ ][^\]]*\.(?:cpp|cc|hpp|h):\d+\] | W\d{4}[ ][\d:.]+[ ]
    """,
    re.VERBOSE,
)
_MAX_LEVEL_TEXT = 500  # characters of a line that decide its level
_RANK_LABEL = re.compile(r"(?:\[?rank \d+\]?: ?)?")


class LevelReader:
    """Find the level of each line of one log: error, warning or info. A traceback is an error up to its last line."""

    def __init__(self) -> None:
        self._in_traceback = False

    def read(self, line: str) -> Level:
        """Return the level of the next line."""
        body = _RANK_LABEL.sub("", _bare(line[:_MAX_LEVEL_TEXT]), count=1)
        if _HEADER in body:
            self._in_traceback = True
            return "error"
        if self._in_traceback:
            self._in_traceback = not body.strip() or body[0].isspace() or _OF_A_STACK.match(body) is not None
            return "error"
        if _SHOWN_ERROR.match(body) or _CHAIN.search(body):
            return "error"
        return "warning" if _SHOWN_WARNING.match(body) else "info"


def blank_all_but_last_words(text: str, *, ended_itself: bool) -> str:
    """Return the text with a blank for every character that does not say how the process ended. The other characters keep their
    positions.

    `ended_itself`: the process chose its exit code and no signal ended it. Only in this case may its last lines say why it
    ended.
    """
    lines = _blank_launchers(text.splitlines(keepends=True))
    first = _last_traceback(lines, ended_itself=ended_itself)
    if first is None:
        first = _last_error(lines) if ended_itself else len(lines)
    return "".join(line if place >= first or _is_library(line) else blank(line) for place, line in enumerate(lines))


def find_exception(text: str) -> tuple[str, int] | None:
    """Return the kind of the exception that ends the last traceback of a text, and the position where its line begins; return
    None if there is no exception."""
    lines = text.splitlines(keepends=True)
    headers = _headers(lines)
    for number in range(headers[-1] + 1, len(lines)) if headers else reversed(range(len(lines))):
        body = _bare(lines[number]).rstrip()
        if (headers and _is_speech(lines[number])) or _ERROR.match(body):  # a SyntaxError has no traceback
            return body.partition(": ")[0].rstrip(":"), sum(map(len, lines[:number]))
    return None


def find_message(text: str, place: int) -> str:
    """Return the whole message of the exception whose line begins at that position, up to the next line that a library or
    launcher writes."""
    lines = text[place:].splitlines(keepends=True)
    end = next((number for number, line in enumerate(lines) if number and (_is_library(line) or not line.strip())), len(lines))
    return "".join(lines[:end])


def find_line(text: str) -> str:
    """Return the line of the script at which the last traceback of a text ends, such as `train.py, line 12`, or an empty string
    if there is none.

    This is the last frame outside the libraries: an error inside torch is attributed to the line of the script that called it.
    """
    begin = max(0, text.rfind(_HEADER))  # a SyntaxError has no traceback
    frames = [(match["file"] or match["rich"], match["line"] or match["at"]) for match in _FRAME.finditer(text, begin)]
    own_frames = [(file, line) for file, line in frames if not _INSTALLED.search(file)]
    return f"{PurePath(own_frames[-1][0]).name}, line {own_frames[-1][1]}" if own_frames else ""


def _blank_launchers(lines: list[str]) -> list[str]:
    """Return the lines, with blanks for launcher tracebacks that only report a failed child process. If a rank's own traceback
    comes first, all other tracebacks of torchrun are blanked out, too."""
    headers = _headers(lines)
    blocks = [(header, _find_exception_line(lines, header, limit)) for header, limit in pairwise([*headers, len(lines)])]
    reports = [block for block in blocks if _OF_LAUNCHER.match(_bare(lines[block[1]]))]
    if reports and reports[0] == blocks[0] and _COMMAND.match(_bare(lines[blocks[0][1]])) and _find_script(lines, blocks[0]):
        reports = reports[1:]  # a launcher's report never comes first: this one is about a command of the script
    if blocks and not _is_of_torchrun(lines, blocks[0]) and blocks[0] not in reports:
        reports += [block for block in blocks if _is_of_torchrun(lines, block)]
    elif any(map(_NESTED.search, lines)):
        return lines
    remaining = list(lines)
    for header, end in reports:
        last = _find_end_of_summary(lines, end)
        remaining[header : last + 1] = map(blank, lines[header : last + 1])
    return remaining


def _find_exception_line(lines: Sequence[str], header: int, limit: int) -> int:
    return next((number for number in range(header + 1, limit) if _is_speech(lines[number])), limit - 1)


def _is_of_torchrun(lines: Sequence[str], block: tuple[int, int]) -> bool:
    """Return whether a traceback contains frames of torchrun and no frame of a script."""
    return any(map(_FRAME_OF_TORCHRUN.search, lines[block[0] : block[1]])) and not _find_script(lines, block)


def _find_script(lines: Sequence[str], block: tuple[int, int]) -> str:
    """Return the script's line that a traceback leads to, or an empty string if all of its frames are in libraries."""
    return find_line("".join(lines[block[0] : block[1]]))


def _find_end_of_summary(lines: Sequence[str], end: int) -> int:
    """Return the number of the last line of the framed summary that torchrun prints after its exception. If there is no
    summary, return `end`, the line of the exception."""
    if end + 1 >= len(lines) or not _bare(lines[end + 1]).startswith(_RULE):
        return end
    return next((number for number in range(end + 2, len(lines)) if _bare(lines[number]).startswith(_RULE)), end)


def _last_traceback(lines: Sequence[str], *, ended_itself: bool) -> int | None:
    """Return the number of the first line of the last traceback, or of the first traceback in its chain. Return None if the
    process continued afterwards."""
    headers = _headers(lines)
    while len(headers) > 1 and not any(
        map(_is_speech, lines[headers[-1] :])
    ):  # the process ended while it was writing this one
        headers.pop()
    if not headers:
        return None
    following = [line for line in lines[headers[-1] :] if _is_speech(line)]
    if len(following) > _AFTERWARDS[ended_itself] + 1:  # plus the line of the exception itself
        return None
    first = headers[-1]
    for header in reversed(headers[:-1]):
        lines_between = lines[header:first]
        if not any(_CHAIN.search(line) for line in lines_between) and "Original " not in lines[first]:
            break
        first = header
    return first


def _last_error(lines: Sequence[str]) -> int:
    """Return the number of the first line that looks like an error among the last lines, or the number of lines if none does.
    The lines after it belong to the error."""
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    numbers = numbers[-_LONG_ENDING if numbers and _HYDRA in lines[numbers[-1]] else -_ENDING :]
    for number in numbers:
        body = _bare(lines[number]).strip()
        if _ERROR_LINE.match(body) or (number == numbers[-1] and _ABRUPT.match(body)):
            return number
    return len(lines)


def _is_speech(line: str) -> bool:
    body = _bare(line)
    quoted = not body.strip() or body[0].isspace() or _HEADER in body or _CHAIN.search(body)
    return not (quoted or _OF_A_STACK.match(body) or _is_library(line))


def _is_library(line: str) -> bool:
    return _LIBRARY.match(_bare(line).lstrip()) is not None


def _headers(lines: Sequence[str]) -> list[int]:
    return [at for at, line in enumerate(lines) if _HEADER in line and not (at and _IGNORED in lines[at - 1])]


def _bare(line: str) -> str:
    """Return a line without the label of its rank. The spaces before its text remain."""
    return _PREFIX.sub("", line, count=1)


def blank(line: str) -> str:
    """Return a line of blanks as long as this line, with the same line end."""
    body = line.rstrip("\r\n")
    return " " * len(body) + line[len(body) :]
