"""The errors of the API that can be asked for by name: what AWS says and with which HTTP status."""

from __future__ import annotations

from tests.mock_aws.call import Call, Refusal

_VCPUS = (
    "You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket that the"
    " specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment"
    " to this limit."
)

_REFUSED = (
    "User: arn:aws:iam::123456789012:user/learner is not authorized to perform: {action} on resource: {resource} because no"
    " identity-based policy allows the {action} action."
)

# InsufficientInstanceCapacity is a server error at EC2: a client takes it for passing and tries again.
_EC2: dict[str, tuple[int, str]] = {
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
    "VcpuLimitExceeded": (400, _VCPUS),
    "MaxSpotInstanceCountExceeded": (400, "Max spot instance count exceeded"),
    "Unsupported": (
        400,
        "Your requested instance type ({instance_type}) is not supported in your requested Availability Zone ({zone}).",
    ),
    "InvalidParameterCombination": (
        400,
        "The specified instance type is not eligible for Free Tier. To list those that are, run describe-instance-types.",
    ),
    "DependencyViolation": (400, "The resource has dependencies and cannot be deleted."),
}

_ELSEWHERE: dict[str, tuple[int, str]] = {
    "AccessDenied": (403, "User: arn:aws:iam::123456789012:user/learner is not authorized to perform: {name}"),
    "AccessDeniedException": (400, "User: arn:aws:iam::123456789012:user/learner is not authorized to perform: {name}"),
    "Throttling": (400, "Rate exceeded"),
    "ExpiredToken": (403, "The security token included in the request is expired"),
    "ExpiredTokenException": (400, "The security token included in the request is expired"),
}

KNOWN = {**_EC2, **_ELSEWHERE}


def refusal(call: Call, code: str, *, message: str = "", status: int = 0, **facts: object) -> Refusal:
    """The error of that name in AWS's words; `facts` fill its blanks. A name of your own needs a message."""
    if code not in KNOWN and not message:
        raise ValueError(f"{code} is not one of the errors known here ({', '.join(KNOWN)}): say its message")
    usual_status, usual = KNOWN.get(code, (400, ""))
    words = {"name": call.name, "limit": 0, "instance_type": "g4dn.2xlarge", "zone": f"{call.region}a", **facts}
    return Refusal(code=code, message=message or usual.format(**words), status=status or usual_status)


def make_denial(call: Call, action: str = "", resource: str = "") -> Refusal:
    """What a caller without the permission hears: each family of services has its own word for it. IAM's own refusal names
    the action and the resource."""
    message = ""
    if action:
        message = _REFUSED.format(action=action, resource=resource)
    if call.protocol == "ec2":
        said = f"You are not authorized to perform this operation. {message} Encoded authorization failure message: mock-AAAA"
        return refusal(call, "UnauthorizedOperation", message=said if message else "")
    code = "AccessDenied" if call.protocol in {"query", "rest-xml"} else "AccessDeniedException"
    return refusal(call, code, message=message)


def make_expiry(call: Call) -> Refusal:
    """What a caller hears whose session has run out."""
    if call.protocol == "ec2":
        return refusal(call, "RequestExpired")
    return refusal(call, "ExpiredToken" if call.protocol in {"query", "rest-xml"} else "ExpiredTokenException")
