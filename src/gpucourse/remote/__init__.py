"""The connection to the nodes: one SSH transport, one fleet, one job protocol. paramiko is used only in `ssh`, cryptography in
`keys`."""
