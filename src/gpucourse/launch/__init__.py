"""Make a launch plan from an exercise, an inventory and parameters. Nothing is changed, so `--dry-run` can print the plan."""
