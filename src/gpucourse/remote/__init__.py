"""The way to the nodes: one SSH transport, one fleet, one job protocol. paramiko lives in `ssh`, cryptography in `keys`."""
