"""The live hour: what no mock account can show, measured once on a real one, within an amount of money that was agreed on."""
