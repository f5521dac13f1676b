"""One request to the API: its content, and the form of answers and refusals in its protocol."""

from __future__ import annotations

import io
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

from botocore.exceptions import BotoCoreError
from moto.core.routing import get_service_router
from moto.moto_server.werkzeug_app import BackendRequest
from werkzeug.exceptions import NotFound

Environ = dict[str, Any]

_SCOPE = re.compile(r"Credential=([^/,\s]+)/\d+/([^/]+)/([^/]+)/aws4_request")
_REST_NAMES = {"elasticfilesystem": "efs"}  # what signs requests, and what the service's model is called


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call. For EC2 and other form requests, `params` are flat (`Placement.GroupName`); otherwise they are the request's
    document.
    """

    service: str
    action: str
    region: str
    key: str
    protocol: str
    content_type: str
    params: Mapping[str, Any] = field(default_factory=dict)
    invocation: str = ""
    """The SDK's id of one call. It stays the same if the SDK has to send the call again."""

    @property
    def name(self) -> str:
        """Return the call's name in a policy, such as `ec2:RunInstances`."""
        return f"{self.service}:{self.action}"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a call."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An error of the API, independent of the protocol."""

    code: str
    message: str
    status: int = 400


class RefusalError(Exception):
    """The request is refused. `refusal`: the error that the caller receives."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.refusal = Refusal(code=code, message=message, status=status)


def read(environ: Environ) -> Call:
    """Return the request in a WSGI environment. Its body can be read again afterwards."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    key, region, service = scope.groups() if scope else ("", "us-east-1", "unsigned")
    content_type = environ.get("CONTENT_TYPE", "")
    path = unquote(environ.get("PATH_INFO", "/"))
    common = {"service": service, "region": region, "key": key, "content_type": content_type}
    common["invocation"] = environ.get("HTTP_AMZ_SDK_INVOCATION_ID", "")
    if content_type.startswith("application/x-www-form-urlencoded"):
        form = dict(parse_qsl(body.decode(), keep_blank_values=True))
        protocol = "ec2" if service == "ec2" else "query"
        return Call(**common, protocol=protocol, action=form.pop("Action", ""), params=form)
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        return Call(**common, protocol="json", action=target.rpartition(".")[2], params=_document(body))
    action, params = _route(service, environ)
    environ["wsgi.input"] = io.BytesIO(body)
    action = action or f"{environ['REQUEST_METHOD']} {path}"
    return Call(**common, protocol="rest-json", action=action, params={**_document(body), **params})


def document(call: Call, content: object) -> Answer:
    """Return a successful answer of one of the JSON services."""
    return Answer(status=200, content_type=call.content_type, body=json.dumps(content, default=str).encode())


def refuse(call: Call, refusal: Refusal) -> Answer:
    """Return the error in the form of the request's protocol."""
    code, message = refusal.code, refusal.message
    headers = {"x-amzn-errortype": code, "x-amzn-requestid": str(uuid.uuid4())}
    if call.protocol in {"json", "rest-json"}:
        body = json.dumps({"__type": code, "code": code, "message": message, "Message": message, "ErrorCode": code}).encode()
        content_type = call.content_type or "application/json"
    else:
        body, content_type = _xml(call.protocol, code, message).encode(), "text/xml;charset=UTF-8"
    return Answer(status=refusal.status, content_type=content_type, body=body, headers=headers, code=code)


def error_code(body: bytes, headers: Mapping[str, str]) -> str:
    """Return the error code in an answer of moto."""
    if match := re.search(rb"<Code>([^<]+)</Code>", body):
        return match.group(1).decode()
    code = headers.get("x-amzn-errortype", "")
    if match := re.search(rb'"__type"\s*:\s*"([^"]+)"', body):
        code = match.group(1).decode()
    return code.rpartition("#")[2]


def _xml(protocol: str, code: str, message: str) -> str:
    inner = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    if protocol == "ec2":
        return f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>{uuid.uuid4()}</RequestID></Response>"
    return f"<ErrorResponse><Error><Type>Sender</Type>{inner}</Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _route(service: str, environ: Environ) -> tuple[str, dict[str, Any]]:
    """Return the operation for a path and a method, according to the service's model."""
    try:
        operation, arguments = get_service_router(_REST_NAMES.get(service, service)).match(BackendRequest(environ.copy()))
    except (NotFound, NotImplementedError, BotoCoreError):
        return "", {}
    return operation.name, dict(arguments)
