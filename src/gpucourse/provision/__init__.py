"""Find Terraform, build its command lines, run it, and keep the stack's folder. This package does not depend on clouds or
simulated nodes."""
