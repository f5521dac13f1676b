"""What an instructor checks in a bundle: what was edited, and whether its runs repeat their results."""
