"""The checks of an instructor on a bundle: its edits, and whether its runs repeat their results."""
