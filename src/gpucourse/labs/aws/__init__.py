"""The verbs where they differ on AWS: a price before, a ladder after, killers on by default, a sweep at the end."""
