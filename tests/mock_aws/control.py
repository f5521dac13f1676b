"""The requests of a test to its mock account: `POST /mock/<verb>` with a JSON document. They do not appear in the journal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tests.mock_aws import inventory
from tests.mock_aws.call import Answer, Environ
from tests.mock_aws.faults import Rule
from tests.mock_aws.patches import termination
from tests.mock_aws.state import State

PATH = "/mock/"


def answer(state: State, environ: Environ) -> Answer:
    """Carry out the test's request. Answer 400 with the reason if that is impossible."""
    verb = environ["PATH_INFO"].removeprefix(PATH)
    document = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or b"{}")
    try:
        result = _VERBS[verb](state, **document)
    except (KeyError, TypeError) as error:
        return _answer_json(400, f"{verb}: {type(error).__name__}: {error}")
    return _answer_json(200, result)


def _answer_json(status: int, document: object) -> Answer:
    return Answer(status=status, content_type="application/json", body=json.dumps(document, default=str).encode())


def _quota(state: State, code: str, value: float) -> None:
    with state.quotas.lock:
        state.quotas.values[code] = value


def _end_instance(state: State, instance_id: str, cause: str) -> None:
    with state.lock:
        termination.end_by_itself(state, instance_id, cause)
        if state.computers is not None:
            state.computers.reconcile()


def _resources(state: State) -> list[dict[str, Any]]:
    with state.lock:
        return [asdict(resource) for resource in inventory.everything(state)]


def _computers(state: State) -> dict[str, dict[str, Any]]:
    return state.computers.list_booted() if state.computers is not None else {}


_VERBS: dict[str, Callable[..., Any]] = {
    "rule": lambda state, **rule: state.faults.add(Rule(**rule)),
    "deny": lambda state, actions: state.faults.deny(actions),
    "expire": lambda state, after: state.faults.expire(after),
    "renew": lambda state: state.faults.renew(),
    "clear": lambda state: state.faults.clear(),
    "release": lambda state: state.faults.release(),
    "held": lambda state: state.faults.list_held_calls(),
    "plan": lambda state, kind: setattr(state, "plan", kind),
    "quota": _quota,
    "end-instance": _end_instance,
    "resources": _resources,
    "computers": _computers,
}
