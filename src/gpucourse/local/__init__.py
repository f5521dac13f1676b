"""Simulated nodes: SSH servers on loopback, hosted by one background process for each stack. Importing the package loads
nothing."""
