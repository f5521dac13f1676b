"""How labs on AWS end, and what is left behind: found by tag, and removed."""
