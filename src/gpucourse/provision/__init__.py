"""Terraform: the binary, its arguments, one running process, and the stack's folder. Independent of clouds and simulated
nodes."""
