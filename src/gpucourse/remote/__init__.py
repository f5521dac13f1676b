"""The connection to the nodes: one SSH transport, one fleet, one job protocol. Only `ssh` and `exchange` use paramiko; only
`keys` uses cryptography."""
