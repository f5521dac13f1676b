"""What in a log counts as a word on how its process ended, and what the script only printed on its way.

A script may print anything, also "CUDA out of memory, trying 16", and go on. So signs are looked for in three places only: in
the last traceback and what follows it, in lines that torch, NCCL and the C++ runtime write themselves, and at the very end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

_PREFIX = re.compile(r"(?:\x1b\[[0-9;]*m)*(?:\[rank\d+\]: ?)?")
_HEADER = "Traceback (most recent call last)"
_IGNORED = "Exception ignored in"
_CHAIN = re.compile(r"During handling of the above exception|The above exception was the direct cause")
_LIBRARY = re.compile(
    r"""
      \[[WEF](?:\d{4})?[ ][^\]]*\.(?:cpp|cc|hpp|h):\d+\]        # torch, in C++: [E1121 09:42:31.9 socket.cpp:1028]
    | [WEF]\d{4}[ ][\d:.]+[ ][^\]]*\.py:\d+\]                    # torchrun
    | (?:\[\S*\][ ]?)?\S+:\d+:\d+[ ]\[-?\d+\][ ](?:\S+[ ])?NCCL[ ]   # NCCL: node0:412:498 [0] init.cc:42 NCCL WARN
    | [^\s:]+:[ ](?:line[ ]\d+:[ ]|\d+:[ ]\S+:[ ]not[ ]found)      # bash and dash, of a script
    | terminate[ ]called | what\(\): | Fatal[ ]Python[ ]error
    """,
    re.VERBOSE,
)
_OF_A_STACK = re.compile(r"frame #\d+|Exception raised from|<omitting python frames>|~*\^+~*$")
_ERROR_LINE = re.compile(r"(?:\S+: )?(?:[A-Za-z_][\w.]*(?:[Ee]rror|Exception)|[Ee]rror|ERROR|[Ff]atal|ncclInvalidUsage)\b")
_ERROR = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*(?:[Ee]rror|Exception|Exit|Interrupt|Warning))(?:: (?P<what>.*))?$")
_ABRUPT = re.compile(
    r"CUDA|HIP|MPS|NCCL|nccl|[Gg]loo|cu[A-Z]|\[enforce|DataLoader|Address already|Connection |No space|Disk quota|Bus error"
    r"|Killed|make(?:\[\d+\])?: |rank \d+ is process"
)
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python3|^<")
_ENDING = 8
"""Of a log without a traceback: how many of the last lines may tell of its end."""
_AFTERWARDS = {True: 60, False: 3}
"""After a traceback that ended its process stand its message and little else; more lines, and the process had gone on."""


def blank_all_but_last_words(text: str, *, ended_itself: bool) -> str:
    """The text with a blank for every character that is no word on the end, so that places in it stay what they were.

    `ended_itself`: the process ended with an exit code of its own, not by a signal; only then its last lines may say why.
    """
    lines = text.splitlines(keepends=True)
    first = _last_traceback(lines, ended_itself=ended_itself)
    if first is None:
        first = _last_error(lines) if ended_itself else len(lines)
    return "".join(line if place >= first or _is_library(line) else _blank(line) for place, line in enumerate(lines))


def find_exception(text: str) -> tuple[str, int] | None:
    """The kind of the exception that the last traceback of a text ends with, and where that line begins."""
    lines = text.splitlines(keepends=True)
    headers = _headers(lines)
    for number in range(headers[-1] + 1, len(lines)) if headers else reversed(range(len(lines))):
        body = _bare(lines[number]).rstrip()
        if (headers and _is_speech(lines[number])) or _ERROR.match(body):  # a SyntaxError has no traceback
            return body.partition(": ")[0].rstrip(":"), sum(map(len, lines[:number]))
    return None


def find_line(text: str) -> str:
    """The script's line that the traceback at the end of a text leads to, as `train.py, line 12`; empty where there is none.

    The last frame outside the libraries: an error inside torch is looked for where the script called it.
    """
    begin = max(0, text.rfind(_HEADER))  # a SyntaxError has no traceback
    own = [match.groups() for match in _FRAME.finditer(text, begin) if not _INSTALLED.search(match[1])]
    return f"{PurePath(own[-1][0]).name}, line {own[-1][1]}" if own else ""


def _last_traceback(lines: Sequence[str], *, ended_itself: bool) -> int | None:
    """Where the last traceback begins, with those that it followed from; None where the process went on after it."""
    headers = _headers(lines)
    if not headers:
        return None
    after = [line for line in lines[headers[-1] :] if _is_speech(line)]
    if len(after) > _AFTERWARDS[ended_itself] + 1:  # and the line of the exception itself
        return None
    first = headers[-1]
    for header in reversed(headers[:-1]):
        between = lines[header:first]
        if not any(_CHAIN.search(line) for line in between) and "Original " not in lines[first]:
            break
        first = header
    return first


def _last_error(lines: Sequence[str]) -> int:
    """The first of the last lines that reads like an error; what follows belongs to it."""
    spoken = [number for number, line in enumerate(lines) if line.strip()][-_ENDING:]
    for number in spoken:
        body = _bare(lines[number]).strip()
        if _ERROR_LINE.match(body) or (number == spoken[-1] and _ABRUPT.match(body)):
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
    """A line without the `[rank1]: ` that torch puts before the lines of a traceback; spaces before its words stay."""
    return _PREFIX.sub("", line, count=1)


def _blank(line: str) -> str:
    body = line.rstrip("\r\n")
    return " " * len(body) + line[len(body) :]
