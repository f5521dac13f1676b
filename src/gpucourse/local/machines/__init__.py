"""Simulated machines: nodes in separate namespaces, all inside one outer namespace. When the outer namespace ends, everything
in it ends. Linux only. Importing this package imports no other module."""
