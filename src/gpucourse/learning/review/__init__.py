"""What an instructor wants to know about a bundle: what was edited, and whether its runs give the same results again."""
