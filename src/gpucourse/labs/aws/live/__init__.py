"""The live hour: measures once, on a real account and within an agreed amount of money, what no mock account can show."""
