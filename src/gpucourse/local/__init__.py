"""Simulated nodes: SSH servers on loopback, hosted by one background process for each stack. Importing this package imports no
other module."""
