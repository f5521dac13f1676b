"""Accounts for tests: one answers from a script, checked against AWS's own models, the other queries moto."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import boto3
import botocore.session
from botocore import xform_name
from botocore.model import OperationModel, ServiceModel
from botocore.validate import ParamValidator

from gpucourse.aws import failures
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, CredentialsError, GpucourseError, PermissionRefused

REGION = "us-east-2"
ENVIRON = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"}
TAGS = {"Project": "gpucourse", "Course": "c0ffee", "Stack": "s-1", "Module": "3", "Owner": "ada"}

Answer = Any


class ScriptedAccount(Account):
    """Answer calls from `answers`, by (service, operation). A value may be an answer, an error, or a function of the call's
    parameters. Parameters and answers must be valid by the service's model, so that a test cannot invent an API."""

    def __init__(self, answers: dict[tuple[str, str], Answer], region: str = REGION) -> None:
        super().__init__(region, ENVIRON)
        self.answers = answers
        self.calls: list[tuple[str, str, dict[str, Any]]] = []

    def in_region(self, region: str) -> Account:
        if region == self.region:
            return self
        region_account = ScriptedAccount(self.answers, region)
        region_account.calls = self.calls
        return region_account

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        model = operation_model(service, operation)
        _valid(parameters, model.input_shape)
        self.calls.append((service, operation, parameters))
        assert (service, operation) in self.answers, f"nobody expected {service}:{operation}"
        answer = self.answers[service, operation]
        if callable(answer):
            answer = answer(parameters)
        if isinstance(answer, Exception):
            raise answer
        _valid(answer, model.output_shape, whole=False)
        assert isinstance(answer, dict)
        return answer

    def pages(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Any]:
        answer = self.call(service, operation, **parameters)
        model = operation_model(service, operation)
        assert model.output_shape is not None
        assert key in model.output_shape.members, f"{operation} has no {key}"
        yield from answer.get(key, [])

    def list_calls(self, operation: str) -> list[dict[str, Any]]:
        """Return the parameters of every call of that operation."""
        return [parameters for _service, name, parameters in self.calls if name == operation]


class MotoAccount(Account):
    """An account that queries moto. moto has no placement groups, so there are none.
    `fail`: errors to raise instead, once each.
    """

    def __init__(self, region: str = REGION, environ: Any = None) -> None:
        super().__init__(region, environ or ENVIRON)
        self.fail: list[tuple[str, GpucourseError]] = []
        self.before: Callable[[str], None] = lambda _operation: None

    def client(self, service: str) -> Any:
        return _client(service, self.region)

    def in_region(self, region: str) -> Account:
        if region == self.region:
            return self
        region_account = MotoAccount(region)
        region_account.fail, region_account.before = self.fail, self.before
        return region_account

    def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        self._disturb(operation)
        return super().call(service, operation, **parameters)

    def pages(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Any]:
        self._disturb(operation)
        if operation == "describe_placement_groups":
            return iter(())
        return super().pages(service, operation, key, **parameters)

    def _disturb(self, operation: str) -> None:
        self.before(operation)
        for index, (name, error) in enumerate(self.fail):
            if name == operation:
                del self.fail[index]
                raise error


@cache
def _session() -> boto3.Session:
    """Return a session with AWS's models, which are large and loaded once for all tests. botocore must know of moto, so moto is
    imported first.
    """
    return Account(REGION, ENVIRON)._start_session()


@cache
def _client(service: str, region: str) -> Any:
    account = Account(region, ENVIRON)
    account._session = _session()
    return account.client(service)


class Clock:
    """A clock that moves only when its `sleep` is called."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def make_host_key(kind: str, *fields: bytes) -> str:
    """Return a public key in OpenSSH's format: its type, then its fields, each after its length."""
    blob = b"".join(len(field).to_bytes(4, "big") + field for field in (kind.encode(), *fields))
    return f"{kind} {base64.b64encode(blob).decode()}"


def make_refusal(action: str = "ec2:Whatever") -> PermissionRefused:
    """Return AWS's refusal of an action."""
    return PermissionRefused(f"{action}: refused", hint="the policy", action=action)


def make_expiry() -> CredentialsError:
    """Return AWS's error for expired credentials."""
    return CredentialsError("the AWS credentials have expired", hint="sign in again")


def error(code: str, message: str = "") -> CloudError:
    """Return an error of AWS with that code, as the session would raise it."""
    failure = failures.classify(code, message)
    return CloudError(failure.meaning, hint=failure.remedy, cloud_code=code, message=message, kind=failure.kind)


def as_tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    """Return tags in the form in which AWS lists them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


@cache
def service_model(service: str) -> ServiceModel:
    """Return AWS's own description of a service, which boto3 also uses."""
    return botocore.session.get_session().get_service_model(service)


@cache
def operation_model(service: str, operation: str) -> OperationModel:
    """Return the description of an operation, by boto3's name for it."""
    model = service_model(service)
    return model.operation_model(next(name for name in model.operation_names if xform_name(name) == operation))


def _valid(values: dict[str, Any], shape: Any, *, whole: bool = True) -> None:
    """Return whether every key exists and has the right type; with `whole`, also whether no required key is missing."""
    if shape is not None:
        report = ParamValidator().validate(values, shape)
        problems = [line for line in report.generate_report().splitlines() if whole or not line.startswith("Missing required")]
        assert not problems, problems
