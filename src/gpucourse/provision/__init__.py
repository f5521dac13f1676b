"""Terraform: which binary, its arguments, one running process, the stack's folder. Independent of clouds and simulated
nodes."""
