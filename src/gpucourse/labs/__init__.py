"""Labs: deploy, inspect and take down the nodes that runs use. May import `runs`."""
