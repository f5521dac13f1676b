"""Turns an exercise, an inventory and parameters into a launch plan: pure, so that `--dry-run` prints what will happen."""
