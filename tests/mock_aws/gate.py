"""The path of every request: control requests, failures on demand, our own services, then moto."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moto.ec2.models import ec2_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.wrappers import Response

from tests.mock_aws import authorization, control, errors
from tests.mock_aws import call as wire
from tests.mock_aws.call import Answer, Call, Environ, Refusal, RefusalError
from tests.mock_aws.permissions import ADMINISTRATOR
from tests.mock_aws.services import ACTIONS
from tests.mock_aws.state import ACCOUNT_ID, State

_READING = ("Describe", "Get", "List")
_MOVING = {"RunInstances", "StartInstances", "StopInstances", "TerminateInstances"}


class Gate:
    """The WSGI application of one mock account."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._answered: dict[tuple[str, str], Answer] = {}

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        if environ["PATH_INFO"].startswith(control.PATH):
            return _send(control.answer(self._state, environ), environ, start_response)
        call = wire.read(environ)
        with self._state.lock:
            zone = _find_zone(call) if call.name == "ec2:RunInstances" else ""
        fault = self._state.faults.before(call, zone)
        answer = wire.refuse(call, fault) if fault else self._answer_once(call, environ)
        if not fault and (late_fault := self._state.faults.after(call, zone)):
            self._answered.pop((call.invocation, call.name), None)
            answer = wire.refuse(call, late_fault)
        self._state.journal(call, answer)
        return _send(answer, environ, start_response)

    def _refuse(self, call: Call) -> Refusal | None:
        """Return the denial for a user with only the course's policy, or None if the call is allowed. The tests' own calls are
        an administrator's.
        """
        if call.key == ADMINISTRATOR:
            return None
        permissions = authorization.list_permissions(call)
        self._state.note_permissions(call, permissions)
        missing = next((permission for permission in permissions if not permission.is_allowed), None)
        return errors.make_denial(call, missing.action, missing.resource) if missing else None

    def _answer_once(self, call: Call, environ: Environ) -> Answer:
        """Carry out a call and return its answer.

        An SDK sends a call again if it did not receive the answer. It then gets the stored answer: nothing is created a second
        time, and IAM is not queried about a resource that the first call deleted.
        """
        with self._state.lock:
            key = (call.invocation, call.name)
            if call.invocation and key in self._answered:
                return self._answered[key]
            denial = self._refuse(call)
            answer = wire.refuse(call, denial) if denial else self._carry_out(call, environ)
            if answer.status < 400 and not call.action.startswith(_READING):
                self._answered[key] = answer
            return answer

    def _carry_out(self, call: Call, environ: Environ) -> Answer:
        with self._state.lock:
            try:
                if handler := ACTIONS.get(call.name):
                    return wire.document(call, handler(self._state, call))
                answer = self._ask_moto(call, environ)
            except RefusalError as error:
                return wire.refuse(call, error.refusal)
            except Exception as error:  # noqa: BLE001 (moto raises what it was not made for; the test hears of it)
                traceback.print_exc(file=sys.stderr)
                return self._refuse_unimplemented(call, f"{type(error).__name__}: {error}")
            if self._state.computers is not None and call.action in _MOVING:
                self._state.computers.reconcile()
        if answer.status >= 400 and not answer.code:
            return self._refuse_unimplemented(call, f"status {answer.status}")
        return answer

    def _ask_moto(self, call: Call, environ: Environ) -> Answer:
        response: dict[str, Any] = {}

        def start(status: str, headers: list[tuple[str, str]], _error: object = None) -> None:
            response["status"], response["headers"] = (
                int(status.split(maxsplit=1)[0]),
                {name.lower(): value for name, value in headers},
            )

        body = b"".join(self._moto(environ, start))
        headers: Mapping[str, str] = response["headers"]
        selection = {name: value for name, value in headers.items() if name.startswith(("x-", "smithy-"))}
        code = wire.error_code(body, headers) if response["status"] >= 400 else ""
        return Answer(
            status=response["status"], content_type=headers.get("content-type", ""), body=body, headers=selection, code=code
        )

    def _refuse_unimplemented(self, call: Call, reason: str) -> Answer:
        """Answer 400, because a client treats 500 as temporary and tries again for minutes."""
        self._state.note_unimplemented(call, reason)
        message = f"the mock account has no {call.name}: {reason}"
        return wire.refuse(call, Refusal(code="MockHasNoSuchAction", message=message))


def _find_zone(call: Call) -> str:
    """Return the zone of a launch, which is that of its subnet."""
    subnet_id = call.params.get("SubnetId") or call.params.get("NetworkInterface.1.SubnetId")
    for subnets in ec2_backends[ACCOUNT_ID][call.region].subnets.values():
        if subnet_id in subnets:
            return str(subnets[subnet_id].availability_zone)
    return str(call.params.get("Placement.AvailabilityZone") or f"{call.region}a")


def _send(answer: Answer, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    response = Response(answer.body, status=answer.status, headers=dict(answer.headers), content_type=answer.content_type)
    return response(environ, start_response)
