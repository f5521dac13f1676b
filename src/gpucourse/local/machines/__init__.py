"""Simulated machines: nodes in namespaces of their own, in one room that ends as a whole. Linux only; loads nothing."""
