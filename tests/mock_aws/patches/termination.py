"""The end of an instance: on request, or by itself."""

from __future__ import annotations

from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.instances import Instance, InstanceState, StateReason

from tests.mock_aws.state import GONE, State

CAUSES = {
    "shutdown": ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown"),
    "spot": ("Server.SpotInstanceTermination", "Spot instance termination"),
}


def install(_state: State) -> None:
    """Apply the patches of this file."""
    close_the_spot_request_at_the_end()
    show_no_network_of_a_terminated_instance()


def close_the_spot_request_at_the_end() -> None:
    """Close the spot request of a terminated instance. Terminating an instance again changes nothing; in moto, it would fail
    because of the network interface.
    """
    usual = Instance.terminate

    def terminate(self: Any) -> InstanceState:
        if self.state == GONE:
            return InstanceState(GONE, 48)
        previous = usual(self)
        request = self.ec2_backend.spot_instance_requests.get(getattr(self, "spot_instance_request_id", None))
        if request is not None:
            request.state = "closed"
            request._status_code = "instance-terminated-by-user"
        return previous

    Instance.terminate = terminate  # type: ignore[method-assign]


def show_no_network_of_a_terminated_instance() -> None:
    """Show only the id, tags and reason of a terminated instance, as AWS does. moto also shows its interface, address and
    subnet.
    """
    for name, empty in (("network_interfaces", []), ("private_ip_address", None), ("subnet_id", None), ("vpc_id", None)):
        _hide(name, empty)


def end_by_itself(state: State, instance_id: str, cause: str) -> None:
    """End an instance that shut itself down or that the spot market reclaimed. Raises KeyError if there is none."""
    code, text = CAUSES[cause]
    instance = next(
        (candidate for _region, candidate in state.instances() if candidate.id == instance_id and candidate.state != GONE), None
    )
    if instance is None:
        raise KeyError(f"there is no instance {instance_id} to end")
    if cause == "spot" or instance.instance_initiated_shutdown_behavior == "terminate":
        instance.terminate()
    else:
        instance.stop()
    instance._reason = f"{text} ({utcnow().strftime('%Y-%m-%d %H:%M:%S UTC')})"
    instance.state_reason = StateReason(f"{code}: {text}", code)


def _hide(name: str, empty: Any) -> None:
    usual = getattr(Instance, name).fget
    setattr(Instance, name, property(lambda self: empty if self._state.name == GONE else usual(self)))
