"""The live hour: measures once, on a real account and within an agreed budget, what no mock account can show."""
