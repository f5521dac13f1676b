"""The verbs where they differ on AWS: a price before, readiness checks after, killers on by default, a leak scan at the end."""
