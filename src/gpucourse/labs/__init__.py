"""Deploy, inspect and take down labs: the nodes that runs use. This package may import `runs`."""
