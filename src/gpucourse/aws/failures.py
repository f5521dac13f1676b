"""Turn an AWS error, from boto3 or from Terraform's output, into advice for the learner."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from gpucourse.aws import policy
from gpucourse.aws.failure_table import ADMINISTRATOR, ATTACHED, POLICY, ROWS, UNKNOWN, FailureRow
from gpucourse.errors import CloudError, CloudThrottled, CredentialsError, GpucourseError, PermissionRefused
from gpucourse.model.cloud import Failure

_BOX = re.compile(r"[│╷╵\s]+")
_FORMS = (  # the forms in which a text contains an error code, the most specific first
    re.compile(r"api error (?P<code>[A-Za-z][\w.]*): (?P<message>.*?)(?= operation error |$)"),
    re.compile(
        r"An error occurred \((?P<code>[A-Za-z][\w.]*)\) when calling the \w+ operation(?: \([^)]*\))?: (?P<message>.*)"
    ),
    re.compile(r"\b(?P<code>(?:Server|Client)\.[A-Z]\w+): (?P<message>.*)"),
    re.compile(r"\b(?P<code>[A-Z][A-Za-z]+(?:\.[A-Za-z.]+)?): (?P<message>[^:]*.*?) status code: \d{3}"),
)
_NO_CREDENTIALS = ("No valid credential sources found", "no EC2 IMDS role found", "failed to refresh cached credentials")
_ZONE = re.compile(r"\b[a-z]{2}(?:-[a-z]+)+-\d[a-z]\b")
_SUGGESTION = re.compile(r"You can currently get .{0,80}?capacity by .*", re.DOTALL)
_ACTION = re.compile(r"(?:not authorized to perform|not authorized to call|permission to perform):? '?([a-z0-9-]+:[A-Za-z*]+)")
_CALL = re.compile(r"operation error (?P<service>[\w ]+): (?P<operation>\w+)")
_POLICY_NAMES = {"efs": "elasticfilesystem"}  # a service's name in Terraform's provider and in a policy
_ENCODED = re.compile(r"\s*Encoded authorization failure message: \S+")


def classify(code: str, message: str = "", call: str = "") -> Failure:
    """Return the meaning of an AWS error code. A code without a row is `unknown`: the command stops and shows AWS's message.

    `call`: the call that failed, if known, under its name in a policy (`ec2:RunInstances`).
    """
    bare = re.sub(r"^(Server|Client)\.", "", code)
    row = next((row for row in ROWS if _fits(row, bare, message, call)), UNKNOWN)
    action = _ACTION.search(message)
    lacking = row.lacks or (action.group(1) if action else "")
    remedy = _permission_remedy(lacking or call) if row.remedy == POLICY else row.remedy
    if row.kind == "parameter" and (size := re.search(r"expect size ?>= ?(\d+) ?GB", message)):
        remedy = f"{row.remedy}: at least {size.group(1)} GiB"
    suggestion = _SUGGESTION.search(message)
    return Failure(
        kind=row.kind,
        code=bare,
        message=_ENCODED.sub("", " ".join(message.split())),
        meaning=row.meaning,
        remedy=remedy,
        suggested=tuple(dict.fromkeys(_ZONE.findall(suggestion.group()))) if suggestion else (),
        action=lacking,
    )


def _permission_remedy(action: str) -> str:
    """Return what to do about a refused action: attach the course's policy if it allows the action; otherwise ask an
    administrator."""
    if action and not policy.allows(action):
        return ADMINISTRATOR
    return f"{POLICY}; {ATTACHED}"


def from_text(text: str) -> Failure | None:
    """Return the failure that a diagnostic of Terraform (or any text) describes; None if the text contains no AWS error."""
    flat = _BOX.sub(" ", text).strip()
    for form in _FORMS:
        if match := form.search(flat):
            call = _call_in(flat[: match.start()])
            failure = classify(match["code"], match["message"], call)
            return replace(failure, action=call) if failure.kind == "permission" and not failure.action else failure
    if any(words in flat for words in _NO_CREDENTIALS):
        return classify("NoCredentials", flat)
    return None


def pick_deciding(failures: Iterable[Failure]) -> Failure | None:
    """Return the failure that decides what to do: the first one that would recur in any other zone and with any other type. If
    there is none, return the first failure. Return None for no failures."""
    failures_so_far = list(failures)
    return next(
        (failure for failure in failures_so_far if not failure.can_retry_elsewhere),
        failures_so_far[0] if failures_so_far else None,
    )


def sentence(failure: Failure) -> str:
    """Return one line for the user: the problem, followed by AWS's message."""
    action = f" ({failure.action})" if failure.action else ""
    suffix = f": {failure.message}" if failure.message else ""
    return f"{failure.meaning}{action} [{failure.code}{suffix}]"


def make_error(failure: Failure, problem: str, *, action: str = "") -> GpucourseError:
    """Return an error of the matching class. `action`: the permission for the call, used if AWS's message does not name it."""
    if failure.kind == "permission":
        return PermissionRefused(problem, hint=failure.remedy, action=failure.action or action)
    if failure.kind == "credentials":
        return CredentialsError(problem, hint=failure.remedy)
    error_class = CloudThrottled if failure.kind == "throttle" else CloudError
    return error_class(problem, hint=failure.remedy, cloud_code=failure.code, message=failure.message, kind=failure.kind)


def _call_in(text: str) -> str:
    """Return the last call that a message from Terraform's provider names, in the form of a policy (`ec2:RunInstances`); an
    empty string if it names none."""
    calls = _CALL.findall(text)
    if not calls:
        return ""
    service, operation = calls[-1]
    name = service.lower().replace(" ", "")
    return f"{_POLICY_NAMES.get(name, name)}:{operation}"


def _fits(row: FailureRow, code: str, message: str, call: str) -> bool:
    is_code = any(fnmatchcase(code, pattern) for pattern in row.codes)
    return is_code and row.needle in message.lower() and row.call in {"", call}
