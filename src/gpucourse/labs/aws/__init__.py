"""What is different on AWS: a price first, readiness checks afterwards, automatic ends by default, a leak scan at the end."""
