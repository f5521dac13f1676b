"""Turn Terraform's exit code and transcript into an error that says what failed, where, and what to type next."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

from gpucourse.errors import GpucourseError, Interrupted, StackBusy, StorageError, TerraformFailed
from gpucourse.provision.transcript import Diagnostic, Transcript

_AGAIN = "what was built so far is recorded: type the command again to continue, or `gpucourse destroy` to remove it"
_PROVISIONER = re.compile(r"^Error running command '.*?': (?P<how>[^'\n]{1,80}?)\. Output: (?P<output>.*)$", re.DOTALL)
_PLAIN_ERROR = re.compile(r"^Error: (.+)$")
_NO_SPACE = ("no space left on device", "disk quota exceeded")
_MAX_DETAIL = 600


def failure(command: str, code: int, transcript: Transcript, log: Path) -> GpucourseError:
    """Return the error for a Terraform command that ended with `code`, which is not 0."""
    if code < 0:
        return _make_killed_error(command, -code, log)
    errors = transcript.errors or [_find_plain_error(command, code, transcript)]
    # After a failure or a stop, Terraform adds "execution halted" for every step that it did not begin. That explains nothing.
    first = next((error for error in errors if error.summary != "execution halted"), errors[0])
    if any(words in (error.summary + error.detail).lower() for error in errors for words in _NO_SPACE):
        return StorageError(
            f"no space left while Terraform worked on {log.parent}",
            hint=f"free some space there (df -h '{log.parent}'), then type the command again",
            log=log,
        )
    if first.summary == "Error acquiring the state lock":
        return StackBusy(
            f"another Terraform process holds the state of this stack{_find_holder(first.detail)}",
            hint="wait for it to end, then type the command again",
            log=log,
        )
    remainder = f" (and {len(errors) - 1} more, see the log)" if len(errors) > 1 else ""
    place = f" at {first.address}" if first.address else (f" in {first.place}" if first.place else "")
    detail = _shorten(first.detail)
    return TerraformFailed(
        f"terraform {command} failed{place}: {first.summary}{remainder}" + (f"\n{detail}" if detail else ""),
        hint=_AGAIN,
        log=log,
        summary=first.summary,
        detail=first.detail,
        address=first.address,
        every=(f"{error.address} {error.summary}\n{error.detail}".strip() for error in errors),
    )


def make_interrupted_error(command: str, transcript: Transcript, log: Path) -> Interrupted:
    """Return the error for a Terraform command that stopped because of an interrupt."""
    count = len(transcript.finished)
    progress = f"after {count} change{'' if count == 1 else 's'}" if transcript.changing else "before it changed anything"
    hint = _AGAIN if transcript.changing else "nothing was built or removed: type the command again when you want to"
    return Interrupted(f"terraform {command} was stopped {progress}", hint=hint, log=log)


def _make_killed_error(command: str, number: int, log: Path) -> TerraformFailed:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    reason = " (is there enough memory?)" if name == "SIGKILL" else ""
    return TerraformFailed(
        f"terraform {command} was ended by {name}{reason}; what it was building at that moment may not be recorded",
        hint="type the command again to continue, or `gpucourse destroy`, which also looks for resources that are not recorded",
        log=log,
        summary=name,
    )


def _find_plain_error(command: str, code: int, transcript: Transcript) -> Diagnostic:
    """Return the first `Error: ...` among lines that are not events, without Terraform's frame. If there is none, return the
    last lines."""
    lines = [line.strip("│╷ ") for line in transcript.text]
    for index, line in enumerate(lines):
        if match := _PLAIN_ERROR.match(line):
            detail = [text for text in lines[index + 1 :] if text.strip("╵")][:6]
            return Diagnostic(summary=match.group(1), detail="\n".join(detail))
    last_lines = "\n".join(list(_drop_warnings(lines))[-6:])
    return Diagnostic(summary=f"{command} ended with exit code {code}", detail=last_lines)


def _drop_warnings(lines: list[str]) -> Iterator[str]:
    """Yield the lines without the framed warning about Terraform's own configuration file.

    This warning precedes the output of every command.
    """
    boxed = False
    for line in lines:
        boxed = boxed or line.startswith("There are some problems with the CLI configuration")
        if line and not boxed:
            yield line
        boxed = boxed and line != "╵"


def _shorten(detail: str) -> str:
    """Return the most useful part of an error. For a failed local command, this is its exit status with its last lines;
    otherwise, it is the beginning."""
    if match := _PROVISIONER.match(detail):
        last = [line for line in match["output"].splitlines() if line.strip()][-5:]
        return "\n".join([f"its command ended with {match['how']}" + (", saying:" if last else ""), *last])[-_MAX_DETAIL:]
    return detail.strip() if len(detail) <= _MAX_DETAIL else detail.strip()[:_MAX_DETAIL] + " ..."


def _find_holder(detail: str) -> str:
    fields = dict(re.findall(r"^\s*(Who|Operation|Created):\s*(\S.*)$", detail, re.MULTILINE))
    return f" ({fields['Who']}, since {fields.get('Created', 'an unknown time')})" if "Who" in fields else ""
