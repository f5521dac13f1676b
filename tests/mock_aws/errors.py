"""The errors of the API that a test can request by name, with AWS's message and HTTP status."""

from __future__ import annotations

from tests.mock_aws.call import Call, Refusal

_LEARNER = "arn:aws:iam::123456789012:user/learner"
_DENIED = f"User: {_LEARNER} is not authorized to perform: {{name}}"
_EXPIRED = "The security token included in the request is expired"
_REFUSED = (
    f"User: {_LEARNER} is not authorized to perform: {{action}} on resource: {{resource}} because no identity-based policy"
    " allows the {action} action."
)
KNOWN: dict[str, tuple[int, str]] = {
    # InsufficientInstanceCapacity is a server error of EC2, so clients treat it as temporary and try again.
    "InsufficientInstanceCapacity": (
        500,
        "We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested ({zone}).",
    ),
    "InternalError": (500, "An internal error has occurred."),
    "RequestLimitExceeded": (503, "Request limit exceeded."),
    "UnauthorizedOperation": (
        403,
        "You are not authorized to perform this operation: {name}. Encoded authorization failure message: mock-AAAA",
    ),
    "RequestExpired": (400, "Request has expired."),
    "DependencyViolation": (400, "The resource has dependencies and cannot be deleted."),
    "AccessDenied": (403, _DENIED),
    "AccessDeniedException": (400, _DENIED),
    "ExpiredToken": (403, _EXPIRED),
    "ExpiredTokenException": (400, _EXPIRED),
}


def refusal(call: Call, code: str, **facts: object) -> Refusal:
    """Return the error of that name with AWS's message. `facts` fill the blanks in the message."""
    status, text = KNOWN[code]
    words = {"name": call.name, "instance_type": "g4dn.2xlarge", "zone": f"{call.region}a", **facts}
    return Refusal(code=code, message=text.format(**words), status=status)


def make_denial(call: Call, action: str = "", resource: str = "") -> Refusal:
    """Return the error for a caller without the permission. Each family of services has its own error code. IAM's own refusal
    names the action and the resource.
    """
    code = _choose(call, "UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
    denial = refusal(call, code)
    if not action:
        return denial
    message = _REFUSED.format(action=action, resource=resource)
    if call.protocol == "ec2":
        message = denial.message.replace(f": {call.name}.", f". {message}")
    return Refusal(code=code, message=message, status=denial.status)


def make_expiry(call: Call) -> Refusal:
    """Return the error for a caller whose credentials have expired."""
    return refusal(call, _choose(call, "RequestExpired", "ExpiredToken", "ExpiredTokenException"))


def _choose(call: Call, of_ec2: str, of_query: str, of_others: str) -> str:
    if call.protocol == "ec2":
        return of_ec2
    return of_query if call.protocol == "query" else of_others
