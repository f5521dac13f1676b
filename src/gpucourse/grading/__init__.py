"""Turn the record of a run into a verdict: read values by a closed grammar, compare them, and write the results with units."""
