"""Labs: deploy, inspect and take down the machines that runs use. May import `runs`."""
