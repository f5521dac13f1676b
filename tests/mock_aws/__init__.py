"""An AWS account for tests: moto's server with the behaviour of the real API that this project leans on, and failures at will.

    with mock_account(tmp_path) as account:
        account.fail("RunInstances", "InsufficientInstanceCapacity", zone="us-east-2a")
        ... anything that honours account.environment: Terraform's provider, boto3 ...
        assert account.resources() == []

`account` is the side of the test; `server` what the process does that answers, one an account, and
`process` that process. Everything stays on 127.0.0.1.
"""
