"""What is different on AWS: a price first, readiness checks afterwards, killers on by default, a leak scan at the end."""
