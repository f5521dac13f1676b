"""How labs on AWS end, and what they leave behind: found by tag, and removed."""
