from __future__ import annotations

from gpucourse.aws.kinds import ApiCall


def test_command_of_a_call_can_be_pasted() -> None:
    call = ApiCall("ec2", "delete_key_pair", {"KeyName": "it's mine", "KeyPairIds": ["key-1", "key-2"]})
    assert call.command("us-east-2") == (
        """aws ec2 delete-key-pair --region us-east-2 --key-name 'it'"'"'s mine' --key-pair-ids key-1 key-2"""
    )
