"""Simulated nodes: SSH endpoints on loopback, hosted by one background process a stack. Importing the package loads nothing."""
