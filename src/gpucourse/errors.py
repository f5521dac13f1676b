"""Every failure that gpucourse expects, and its exit code.

    GpucourseError                       1   a bug in gpucourse
    ├── UsageError                       2   wrong usage: an unknown name, a value out of range
    │   ├── UnknownName                      with "did you mean"
    │   └── ManifestError                    a file that a person wrote has errors
    ├── MissingError                     3   something that the command needs is missing (a tool, a package, a lab)
    │   ├── StorageError                     the disk is full, or a folder cannot be written
    │   ├── HomeMissing                      the user has no home folder in which files can be stored
    │   ├── UntrustedFolder                  another user owns or may change a workspace or course
    │   ├── NewerFormat                      a file written by a newer gpucourse: refused and kept
    │   ├── DamagedFile                      a file of the workspace that cannot be used: kept
    │   ├── CredentialsError                 the cloud does not accept the credentials, or they have expired
    │   └── PermissionRefused                the cloud knows the identity and denies the action
    ├── ExerciseFailed                   4   the exercise ran and failed
    ├── CheckFailed                      5   a check did not pass
    ├── InfrastructureError              6   Terraform or a stack failed
    │   ├── TerraformFailed
    │   ├── StackBusy                        another command holds this stack
    │   └── CloudError                       the cloud answered with an error
    │       ├── CloudUnreachable             the cloud did not answer
    │       └── CloudThrottled               the cloud rejects calls because they are too frequent
    ├── UnreachableError                 7   a node cannot be reached
    │   ├── NoAnswer                         nothing answers over SSH at its address
    │   ├── OtherHostKey                     a machine with another host key answers at its address
    │   └── NodeUntrusted                    a node's answer cannot be true and is not used
    ├── LeftoverError                    8   something may still run, or still be billed
    └── Interrupted                    130   the person pressed Ctrl-C

An error says what happened and where (`what`), what to type next (`hint`), and where the log is (`log`). Its `code` is stable:
scripts that read `--json` depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """The exit codes of the process. Their numbers never change: the user's scripts depend on them."""

    DONE = 0
    FAULT = 1
    USAGE = 2
    MISSING = 3
    EXERCISE_FAILED = 4
    CHECK_FAILED = 5
    INFRASTRUCTURE = 6
    UNREACHABLE = 7
    MAY_BE_BILLED = 8
    INTERRUPTED = 130


class GpucourseError(Exception):
    """A failure and its remedy.

    `what`: what happened and where.
    `hint`: what to type next.
    `log`: the file to read.
    """

    exit_code = ExitCode.FAULT
    code = "fault"

    def __init__(self, what: str, *, hint: str = "", log: Path | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.log = log

    def with_subject(self, subject: str) -> str:
        """Return `what` with `subject` in front, or `what` alone if it already begins with `subject`."""
        return self.what if self.what.startswith(subject) else f"{subject}: {self.what}"


def suggest(word: str, candidates: Iterable[str], *, cutoff: float = 0.5) -> str:
    """Return ` Did you mean a or b?` with the known names that are most similar to the word, or an empty string.

    Case and leading dashes are ignored. `cutoff`: names below this similarity (0 to 1) are not suggested.
    """
    import difflib

    matcher = difflib.SequenceMatcher(b=word.lower().lstrip("-"))
    ratios: dict[str, float] = {}
    for name in candidates:
        matcher.set_seq1(name.lower().lstrip("-"))
        ratios[name] = matcher.ratio()
    nearest = max(ratios.values(), default=0.0)
    close = [name for name, ratio in ratios.items() if ratio >= max(cutoff, nearest - 0.15)]
    close.sort(key=lambda name: -ratios[name])
    return f" Did you mean {' or '.join(close[:3])}?" if close else ""


class UsageError(GpucourseError):
    """The command was typed incorrectly: for example, a value is out of range, or two flags cannot be combined."""

    exit_code = ExitCode.USAGE
    code = "usage"


class UnknownName(UsageError):
    """There is no module, exercise, parameter or run of that name. The message suggests similar names."""

    code = "unknown_name"

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        suggestion = suggest(name, self.known)
        names = ", ".join(self.known[:12]) + (", ..." if len(self.known) > 12 else "")
        super().__init__(
            f"there is no {kind} '{name}'{suggestion and f'.{suggestion}'}", hint=hint or f"known: {names or 'none'}"
        )


class ManifestError(UsageError):
    """A file that a person wrote has errors. `complaints` has one line for each error: `file: key.path: reason`."""

    code = "manifest"

    def __init__(self, complaints: Iterable[str], *, hint: str = "") -> None:
        self.complaints = tuple(complaints)
        super().__init__("\n".join(self.complaints), hint=hint)


class MissingError(GpucourseError):
    """Something that the command needs is missing. The hint says what to type to get it."""

    exit_code = ExitCode.MISSING
    code = "missing"


class StorageError(MissingError):
    """The disk is full or a folder cannot be written. Files that were written earlier are intact."""

    code = "storage"


class HomeMissing(MissingError):
    """The user has no home folder in which files can be stored. The folder `/` does not count."""

    code = "no_home"


class UntrustedFolder(MissingError):
    """A workspace or a course belongs to another user, or others may write to it, and this user has not trusted it."""

    code = "untrusted"


class NewerFormat(MissingError):
    """The file at `path` has format `version`, but this program reads formats up to `supported`. The file was not changed."""

    code = "newer_format"

    def __init__(self, path: Path, version: int, supported: int) -> None:
        self.path = path
        super().__init__(
            f"{path} has format {version}; this gpucourse reads up to {supported}. The file was left as it is.",
            hint="upgrade: pip install --upgrade gpucourse",
        )


class DamagedFile(MissingError):
    """A file of the workspace cannot be used; `why` is the reason. The file was not changed."""

    def __init__(self, path: Path, why: str) -> None:
        self.why = why
        super().__init__(
            f"{path} is damaged: {why}", hint=f"move it away (mv '{path}' '{path}.damaged') and type the command again"
        )


class CredentialsError(MissingError):
    """The credentials for the cloud are missing, wrong or expired."""

    code = "credentials"


class PermissionRefused(MissingError):
    """The cloud accepts the credentials but denies the action. `action` is the missing permission, such as
    `ec2:RunInstances`."""

    code = "permission"

    def __init__(self, what: str, *, hint: str = "", log: Path | None = None, action: str = "") -> None:
        super().__init__(what, hint=hint, log=log)
        self.action = action


class ExerciseFailed(GpucourseError):
    """The exercise ran on its nodes and did not succeed."""

    exit_code = ExitCode.EXERCISE_FAILED
    code = "exercise_failed"


class CheckFailed(GpucourseError):
    """The exercise ran, and at least one of its checks did not pass."""

    exit_code = ExitCode.CHECK_FAILED
    code = "check_failed"


class InfrastructureError(GpucourseError):
    """A stack could not be built, changed or removed."""

    exit_code = ExitCode.INFRASTRUCTURE
    code = "infrastructure"


class TerraformFailed(InfrastructureError):
    """Terraform ended with an error.

    `log`: the file with its whole output.
    `summary`, `detail`, `address`: Terraform's description of its first error, or empty strings.
    `every`: the descriptions of all errors, in order.
    """

    code = "terraform"

    def __init__(
        self,
        what: str,
        *,
        hint: str = "",
        log: Path | None = None,
        summary: str = "",
        detail: str = "",
        address: str = "",
        every: Iterable[str] = (),
    ) -> None:
        super().__init__(what, hint=hint, log=log)
        self.summary, self.detail, self.address, self.every = summary, detail, address, tuple(every)


class StackBusy(InfrastructureError):
    """Another gpucourse command holds the stack's lock."""

    code = "stack_busy"


class CloudError(InfrastructureError):
    """The cloud answered a call with an error. `cloud_code` and `message` come from the cloud; `kind` classifies the error."""

    code = "cloud"

    def __init__(self, what: str, *, hint: str = "", cloud_code: str = "", message: str = "", kind: str = "unknown") -> None:
        super().__init__(what, hint=hint)
        self.cloud_code, self.message, self.kind = cloud_code, message, kind


class CloudUnreachable(CloudError):
    """The cloud's endpoint did not answer, for example because there is no network or the region is wrong."""

    code = "cloud_unreachable"


class CloudThrottled(CloudError):
    """The cloud rejects calls because they are too frequent, even after several retries with growing pauses."""

    code = "cloud_throttled"


class UnreachableError(GpucourseError):
    """A node does not answer over SSH, or has stopped answering."""

    exit_code = ExitCode.UNREACHABLE
    code = "unreachable"


class NoAnswer(UnreachableError):
    """Nothing answers over SSH at a node's address, or nothing answers in time."""


class OtherHostKey(UnreachableError):
    """The machine at a node's address has a different host key from the recorded one. Nothing was sent to that machine."""


class NodeUntrusted(UnreachableError):
    """A node sent data that an honest node never sends, such as damaged or far too long data. The data was not used."""

    code = "node_untrusted"


class LeftoverError(GpucourseError):
    """A destroy left something behind. The message says what is left and how to remove it; the lab's record is kept."""

    exit_code = ExitCode.MAY_BE_BILLED
    code = "leftover"


class Interrupted(GpucourseError):
    """The user stopped the command. The hint says what is still running and how to return to it."""

    exit_code = ExitCode.INTERRUPTED
    code = "interrupted"
