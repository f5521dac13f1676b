"""Calls to AWS, with short timeouts and bounded retries. Every error becomes one of this program's errors.

This is the only file that imports boto3 and botocore. The imports are inside functions, because both packages together take a
third of a second to load.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from gpucourse.aws import failures
from gpucourse.errors import (
    CloudError,
    CloudUnreachable,
    CredentialsError,
    GpucourseError,
)

if TYPE_CHECKING:
    import boto3

CONNECT_S, READ_S, ATTEMPTS, CONNECTIONS = 5, 20, 4, 16
IN_US_EAST_1 = {"pricing", "freetier", "ce", "budgets", "iam"}  # always called in this region
IAM_ACTIONS = {  # operations that have another name in a policy
    "budgets:DescribeBudgets": "budgets:ViewBudget",
    "budgets:DescribeNotificationsForBudget": "budgets:ViewBudget",
}
IAM_NAMES = {"efs": "elasticfilesystem", "service-quotas": "servicequotas", "resourcegroupstaggingapi": "tag"}


@dataclass(frozen=True, kw_only=True)
class AwsIdentity:
    """The identity that makes the calls: the number of its account, and its ARN."""

    account: str
    arn: str

    @property
    def root(self) -> bool:
        """Return whether the identity is the account's root user, who needs no permissions and should not do daily work."""
        return self.arn.endswith(":root")


class Account:
    """One AWS account, with the region in which calls are made. Threads may share this object.

    Calls raise CredentialsError, PermissionRefused, CloudUnreachable, CloudThrottled or CloudError.
    """

    def __init__(self, region: str, environ: Mapping[str, str]) -> None:
        self.region = region
        self._environ = environ
        self._clients: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._session: boto3.Session | None = None

    def in_region(self, region: str) -> Account:
        """Return the same account in another region."""
        return self if region == self.region else type(self)(region, self._environ)

    def client(self, service: str) -> Any:
        """Return the boto3 client of a service. It is created only once."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._make(service)
            return self._clients[service]

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        """Make one call and return its whole answer. `operation`: boto3's name of the call (`describe_vpcs`)."""
        with _translate_errors(self, service, operation):
            answer: dict[str, Any] = getattr(self.client(service), operation)(**parameters)
            return answer

    def call_if_exists(self, service: str, operation: str, **parameters: Any) -> dict[str, Any] | None:
        """Make one call and return its answer; None if the resource does not exist, or no longer exists."""
        try:
            return self.call(service, operation, **parameters)
        except CloudError as error:
            if error.kind != "gone":
                raise
            return None

    def pages(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Any]:
        """Yield every item of the list `key`, over all pages of the answer."""
        with _translate_errors(self, service, operation):
            client = self.client(service)
            if not client.can_paginate(operation):
                yield from getattr(client, operation)(**parameters).get(key, [])
                return
            for page in client.get_paginator(operation).paginate(**parameters):
                yield from page.get(key, [])

    def action(self, service: str, operation: str) -> str:
        """Return the name of an operation in a policy.

        For example, return `servicequotas:GetAWSDefaultServiceQuota` for `get_aws_default_service_quota`.
        """
        client = self._clients.get(service)
        methods = client.meta.method_to_api_mapping if client is not None else {}
        name = f"{IAM_NAMES.get(service, service)}:{methods.get(operation) or operation.title().replace('_', '')}"
        return IAM_ACTIONS.get(name, name)

    def identity(self) -> AwsIdentity:
        """Return the identity that makes the calls. This is the cheapest test of whether there are credentials."""
        answer = self.call("sts", "get_caller_identity")
        return AwsIdentity(account=str(answer["Account"]), arn=str(answer["Arn"]))

    def _make(self, service: str) -> Any:
        from botocore.config import Config

        key = f"AWS_ENDPOINT_URL_{service.upper().replace('-', '_')}"
        make: Callable[..., Any] = self._start_session().client  # the stubs have no overload for a plain str
        return make(
            service,
            region_name="us-east-1" if service in IN_US_EAST_1 else self.region,
            endpoint_url=self._environ.get(key) or self._environ.get("AWS_ENDPOINT_URL") or None,
            config=Config(
                connect_timeout=CONNECT_S,
                read_timeout=READ_S,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
                max_pool_connections=CONNECTIONS,
            ),
        )

    def _start_session(self) -> boto3.Session:
        """Return boto3's session, which is configured by `environ`, not by the environment of this process."""
        if self._session is None:
            import boto3
            import botocore.session

            core = botocore.session.Session(profile=self._profile())
            core.register_component("data_loader", _models())
            for variable, name in (("AWS_CONFIG_FILE", "config_file"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials_file")):
                if self._environ.get(variable):
                    core.set_config_variable(name, self._environ[variable])
            if self._environ.get("AWS_ACCESS_KEY_ID"):
                core.set_credentials(
                    self._environ["AWS_ACCESS_KEY_ID"],
                    self._environ.get("AWS_SECRET_ACCESS_KEY", ""),
                    self._environ.get("AWS_SESSION_TOKEN") or None,
                )
            else:
                resolver = core.get_component("credential_provider")
                resolver.remove("env")
                if self._environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
                    resolver.remove("iam-role")
            self._session = boto3.Session(botocore_session=core)
        return self._session

    def _profile(self) -> str | None:
        if self._environ.get("AWS_ACCESS_KEY_ID"):
            return None
        return self._environ.get("AWS_PROFILE") or self._environ.get("AWS_DEFAULT_PROFILE") or None


def find_partition(region: str) -> str:
    """Return the partition of a region (`aws`, `aws-us-gov`, `aws-cn`) according to boto3; an empty string if it is unknown."""
    import botocore.session
    from botocore.exceptions import UnknownRegionError

    try:
        return str(botocore.session.Session().get_partition_for_region(region))
    except UnknownRegionError:
        return ""


@cache
def _models() -> Any:
    """Return AWS's description of its services. It is read once for all sessions: EC2's alone takes a third of a second."""
    from botocore.loaders import create_loader

    return create_loader()


@contextmanager
def _translate_errors(account: Account, service: str, operation: str) -> Iterator[None]:
    """Turn exceptions of botocore inside the block into this program's errors."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("botocore", "boto3")):
            raise
        action = account.action(service, operation)
        translated = _translate_error(error, f"{action} in {account.region}", action)
        if translated is None:
            raise
        raise translated from error


def _translate_error(error: BaseException, place: str, action: str) -> GpucourseError | None:
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        details = error.response.get("Error", {})
        failure = failures.classify(str(details.get("Code", "")), str(details.get("Message", "")), action)
        return failures.make_error(failure, f"{place}: {failures.sentence(failure)}", action=action)
    if isinstance(error, exceptions.ParamValidationError):  # the request was wrong: a bug of this program
        return None
    credentials = (
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.CredentialRetrievalError,
        exceptions.ProfileNotFound,
        exceptions.ConfigParseError,
        exceptions.SSOError,
        exceptions.TokenRetrievalError,
        exceptions.NoAuthTokenError,
        exceptions.InvalidConfigError,
        exceptions.MissingDependencyException,  # a way to sign in that needs an extra package besides botocore
        getattr(exceptions, "LoginError", exceptions.SSOError),  # in newer versions of botocore
    )
    if isinstance(error, credentials):
        failure = failures.classify("NoCredentials", str(error))
        return CredentialsError(f"{failure.meaning} that can be used: {error}", hint=failure.remedy)
    if isinstance(error, (exceptions.HTTPClientError, exceptions.ConnectionError)):
        hint = "check the network, the region's name and AWS_ENDPOINT_URL, then type the command again"
        return CloudUnreachable(f"AWS does not answer ({place}): {error}", hint=hint, kind="service")
    return CloudError(f"AWS could not be queried ({place}): {error}", hint="check the region's name and ~/.aws/config")
