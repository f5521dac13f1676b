from __future__ import annotations

from gpucourse.aws.kinds import GATEWAY, KINDS, ORDER, ApiCall, role_steps


def test_command_of_a_call_can_be_pasted() -> None:
    call = ApiCall("ec2", "delete_key_pair", {"KeyName": "it's mine", "KeyPairIds": ["key-1", "key-2"]})
    assert call.command("us-east-2") == (
        """aws ec2 delete-key-pair --region us-east-2 --key-name 'it'"'"'s mine' --key-pair-ids key-1 key-2"""
    )


def test_remove_frees_a_container_before_it_deletes_it() -> None:
    calls = GATEWAY.remove({"InternetGatewayId": "igw-1", "Attachments": [{"VpcId": "vpc-1"}]})
    assert [call.operation for call in calls] == ["detach_internet_gateway", "delete_internet_gateway"]
    assert [call.operation for call in role_steps("r", "p")] == ["delete_role_policy", "delete_role"]
    places = [ORDER.index(kind.name) for kind in KINDS]
    assert places == sorted(places)
    assert ORDER.index("instance") < ORDER.index("VPC") < ORDER.index("schedule group")
