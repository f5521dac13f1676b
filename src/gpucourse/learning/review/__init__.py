"""What an instructor asks of a bundle: what was edited, and whether its runs come out the same again."""
