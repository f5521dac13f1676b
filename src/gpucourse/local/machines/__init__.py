"""Simulated machines: nodes in separate namespaces, all inside one outer namespace. When it ends, everything in it ends. Linux
only. Importing this package imports no other module."""
