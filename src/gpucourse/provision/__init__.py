"""Terraform: which one, its arguments, one running process, the stack's folder. Knows no cloud and no simulated node."""
