"""Simulated machines: nodes in namespaces of their own, all inside one that ends as a whole. Linux only; imports nothing."""
