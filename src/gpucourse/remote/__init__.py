"""The connection to the nodes. Only `ssh` and `exchange` use paramiko, and only `keys` uses cryptography."""
