"""The table of AWS error codes: the meaning of each, and the remedy. The first row that matches an error is used.

A code is a shell pattern (`InvalidAMIID.*`). These fields are optional:

`needle`: text that the message must contain, in lower case.
`call`: the call that failed, under its name in a policy.
`lacks`: the missing permission, for errors whose message does not name it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucourse.model.cloud import FailureKind

LEAKS = "see what exists, and remove what you no longer need: gpucourse leaks, then gpucourse leaks --clean"
QUOTA = (
    "ask for more: gpucourse doctor --target aws --request-quota, with the same --region and --gpu (people at AWS decide, "
    "which takes hours to days). Until then: fewer nodes, the other market (with or without --spot), another --region, or "
    "a target that costs nothing: --target here, --target hosts or --target local"
)
LATER = "wait a few minutes, then type the command again"
POLICY = "give this identity the course's policy: gpucourse doctor --policy prints it"
_WAYS = "(aws sso login, or aws login, or aws configure), check it with: aws sts get-caller-identity"
SIGN_IN = f"sign in {_WAYS}"
SIGN_IN_AGAIN = f"sign in again {_WAYS}"
HAND_OVER = 'eval "$(aws configure export-credentials --format env)"'  # aws login, MFA: only the aws program can use these
SUPPORT = "open a case with AWS Support: https://console.aws.amazon.com/support/home"
COST_EXPLORER = (
    "an administrator of the account opens https://console.aws.amazon.com/costmanagement/home once, which enables it; the "
    "first data takes a day. Until then: gpucourse cost, which does its own accounting"
)
ADMINISTRATOR = "ask an administrator to do this, or to allow this identity to do it: the course's policy does not allow it"
ATTACHED = (
    "if this identity already has it, a permissions boundary or a policy of the organisation refuses: ask the account's "
    "administrator"
)
_MAKE_ROLE = "aws iam create-service-linked-role --aws-service-name"
SPOT_ROLE = f"an administrator of the account types this once: {_MAKE_ROLE} spot.amazonaws.com"
STORAGE_ROLE = f"an administrator of the account types this once: {_MAKE_ROLE} elasticfilesystem.amazonaws.com"
QUOTA_ROLE = f"an administrator of the account types this once: {_MAKE_ROLE} servicequotas.amazonaws.com"
_MAKES_ROLES = "iam:CreateServiceLinkedRole"
# EventBridge Scheduler has no error code for this, only a sentence: "The execution role you provide must allow AWS
# EventBridge Scheduler to assume the role."
ROLE_NOT_TAKEN = "must allow aws eventbridge scheduler to assume the role"


@dataclass(frozen=True)
class FailureRow:
    """One row: the codes that it covers, their meaning, the message, and the command to type."""

    codes: tuple[str, ...]
    kind: FailureKind
    meaning: str
    remedy: str
    needle: str = ""
    call: str = ""
    lacks: str = ""


ROWS: tuple[FailureRow, ...] = (
    FailureRow(
        ("InvalidParameterCombination",),
        "account",
        "this account is on AWS's Free plan, which does not allow GPU instances",
        "upgrade to the Paid plan in the Billing console: https://console.aws.amazon.com/billing/home#/account",
        needle="free tier",
    ),
    FailureRow(
        ("VcpuLimitExceeded",), "quota", "the quota of on-demand vCPUs for this kind of instance is too small here", QUOTA
    ),
    FailureRow(
        ("MaxSpotInstanceCountExceeded",),
        "quota",
        "the quota of spot vCPUs for this kind of instance is too small here",
        f"if you just ended spot instances, {LATER} (AWS frees the quota with a delay); otherwise {QUOTA}",
    ),
    FailureRow(("InstanceLimitExceeded",), "quota", "the quota for this kind of instance is too small here", QUOTA),
    FailureRow(
        ("QuotaExceededException", "ResourceAlreadyExistsException"),
        "quota",
        "requests for higher quotas are already open",
        "wait for AWS's answers: https://console.aws.amazon.com/servicequotas/home/requests",
    ),
    FailureRow(("*VolumeLimitExceeded",), "quota", "the quota of EBS storage is used up here", LEAKS),
    FailureRow(
        ("InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacity*", "UnfulfillableCapacity"),
        "capacity",
        "AWS has no free machine of this type in this zone right now",
        "use another zone, a similar type (--gpu), another --region or the other market; or wait a few minutes",
    ),
    FailureRow(
        ("SpotInstanceTermination", "SpotInstanceShutdown"),
        "capacity",
        "AWS reclaimed the spot instance",
        "deploy again, or without --spot",
    ),
    FailureRow(
        ("Unsupported",),
        "zone",
        "this zone does not offer what was requested",
        "use another zone; if none offers it, another type (--gpu) or another --region",
    ),
    FailureRow(
        ("UnsupportedOperation",),
        "parameter",
        "EC2 does not support this for a spot instance",
        "take the lab down (gpucourse destroy) and deploy it again, which copies the stack again; or deploy it without --spot",
        needle="spot",
    ),
    FailureRow(
        ("InsufficientFreeAddressesInSubnet",),
        "zone",
        "the subnet in this zone has no free address left",
        f"use another zone; or {LEAKS}",
    ),
    FailureRow(
        ("InvalidAMIID.*",),
        "image",
        "the machine image does not exist, or no longer exists, in this region",
        "type the command again, so that it is looked up again in this region",
    ),
    FailureRow(
        ("OptInRequired",),
        "account",
        "the account may not use this service or region yet (sign-up unfinished, card not verified, or region not enabled)",
        "finish the sign-up and check the card: https://portal.aws.amazon.com/billing/signup; a region is enabled at "
        "https://console.aws.amazon.com/billing/home#/account",
    ),
    FailureRow(
        ("PendingVerification",),
        "account",
        "AWS is still verifying this account",
        f"wait (minutes to hours), then type the command again; after a day {SUPPORT}",
    ),
    FailureRow(("Blocked",), "account", "AWS has blocked this account", SUPPORT),
    FailureRow(
        ("AuthFailure.ServiceLinkedRoleCreationNotPermitted",),
        "permission",
        "the account's first spot instance needs AWS's own role for spot, and this identity may not create it",
        SPOT_ROLE,
        lacks=_MAKES_ROLES,
    ),
    FailureRow(
        ("DependencyAccessDenied*",),
        "permission",
        "the account's first request for a quota needs AWS's own role for Service Quotas, and this identity may not create it",
        QUOTA_ROLE,
        lacks=_MAKES_ROLES,
    ),
    FailureRow(
        ("AccessDenied*",),
        "permission",
        "the account's first mount target needs AWS's own role for EFS, and this identity may not create it",
        f"{STORAGE_ROLE}; if that role exists already, {POLICY}",
        needle="that action on the specified resource",  # EFS does not say which action
        call="elasticfilesystem:CreateMountTarget",
        lacks=_MAKES_ROLES,
    ),
    FailureRow(
        ("AccessDenied*",),
        "account",
        "Cost Explorer is not enabled in this account yet",
        COST_EXPLORER,
        needle="not enabled for cost explorer",
    ),
    FailureRow(
        ("DataUnavailable*",),
        "account",
        "Cost Explorer has no data for this account yet",
        "wait a day: AWS's bill is a day late. Until then: gpucourse cost, which does its own accounting",
    ),
    FailureRow(
        ("UnauthorizedOperation", "AccessDenied*", "AuthorizationError", "NotAuthorized"),
        "permission",
        "this identity is not allowed to do that",
        POLICY,
    ),
    FailureRow(
        ("ExpiredToken*", "TokenRefreshRequired"),
        "credentials",
        "the AWS credentials have expired",
        SIGN_IN_AGAIN,
    ),
    FailureRow(  # EC2 uses this code for both
        ("RequestExpired",),
        "credentials",
        "the AWS credentials have expired, or this machine's clock is wrong",
        f"check the clock (date -u); {SIGN_IN_AGAIN}",
    ),
    FailureRow(
        ("SignatureDoesNotMatch", "InvalidSignature*", "RequestTimeTooSkewed"),
        "credentials",
        "AWS does not accept the signature: the secret key is wrong, or this machine's clock is",
        f"check the clock (date -u); {SIGN_IN_AGAIN}",
    ),
    FailureRow(
        ("AuthFailure",),
        "credentials",
        "AWS does not accept these credentials here: they are wrong, the region is not enabled, or the clock is wrong",
        f"check the clock (date -u); {SIGN_IN_AGAIN}; a region is enabled at "
        f"https://console.aws.amazon.com/billing/home#/account",
    ),
    FailureRow(
        (
            "InvalidClientTokenId",
            "UnrecognizedClientException",
            "InvalidAccessKeyId",
            "MissingAuthenticationToken*",
            "IncompleteSignature*",
            "NotSignedUp",
        ),
        "credentials",
        "AWS does not recognise these credentials",
        SIGN_IN_AGAIN,
    ),
    FailureRow(
        ("NoCredentials",),
        "credentials",
        "there are no AWS credentials",
        f"{SIGN_IN}; if that works and this does not, export them in this terminal: {HAND_OVER}",
    ),
    FailureRow(
        ("RequestLimitExceeded", "Throttl*", "TooManyRequests*", "RequestThrottled*", "SlowDown", "BandwidthLimitExceeded"),
        "throttle",
        "AWS limits the number of requests, and refused this one",
        LATER,
    ),
    FailureRow(
        ("InvalidBlockDeviceMapping",),
        "parameter",
        "the root disk is smaller than the machine image",
        "give the nodes a larger root disk",
        needle="smaller than snapshot",
    ),
    FailureRow(
        ("ValidationException",),
        "role",
        "EventBridge Scheduler may not assume the role that ends the instances, or does not know it yet",
        "if the role is new, AWS accepts it within minutes: type the command again. If it is older, it lacks the trust policy "
        "in the file for administrators: gpucourse doctor --setup prints it",
        needle=ROLE_NOT_TAKEN,
    ),
    FailureRow(
        ("*.Duplicate", "*LimitExceeded", "*AlreadyExists*", "*InUseException"),
        "leftovers",
        "something with that name already exists, or the account has reached its limit for this kind of resource",
        LEAKS,
    ),
    FailureRow(
        ("DependencyViolation", "*.InUse", "*InUse", "IncorrectInstanceState", "IncorrectState"),
        "in_use",
        "something else still depends on it",
        LATER,
    ),
    FailureRow(
        ("*NotFound*", "*.Unknown", "NoSuch*", "*DoesNotExist", "InvalidAssociationID.*", "Gateway.NotAttached"),
        "gone",
        "it does not exist, or no longer exists",
        "type the command again",
    ),
    FailureRow(
        ("InternalError", "InternalFailure", "InternalServer*", "ServiceUnavailable*", "Unavailable", "RequestTimeout*"),
        "service",
        "AWS itself failed",
        f"{LATER}; https://health.aws.amazon.com shows known outages",
    ),
    FailureRow(
        (
            "InvalidParameter*",
            "IllegalArgument*",
            "Invalid*",
            "Malformed*",
            "MissingParameter",
            "UnknownParameter",
            "UnsupportedOperation",
            "ValidationE*",
            "VPCIdNotSpecified",
        ),
        "parameter",
        "AWS does not accept one of the values",
        "read AWS's message above; if you did not choose the value, it is a bug in gpucourse",
    ),
)

UNKNOWN = FailureRow(("*",), "unknown", "AWS refused", "read AWS's message above, then type the command again")
