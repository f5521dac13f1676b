"""An AWS account for tests: moto's server with the behaviour of the real API that this project needs, and failures on demand.

    with mock_account(tmp_path) as account:
        account.fail("RunInstances", "InsufficientInstanceCapacity", zone="us-east-2a")
        ... anything that honours account.environment: Terraform's provider, boto3 ...
        assert account.resources() == []

`account` is the test's side. `server` is what the process of one account does, and `process` starts and ends that process.
Everything stays on 127.0.0.1.
"""
