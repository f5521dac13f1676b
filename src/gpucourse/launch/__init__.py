"""From an exercise, an inventory and parameters to a launch plan: pure, so that `--dry-run` prints what will happen."""
