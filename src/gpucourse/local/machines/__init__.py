"""Simulated machines: nodes in separate namespaces, all inside one that ends as a whole. Linux only; imports nothing."""
