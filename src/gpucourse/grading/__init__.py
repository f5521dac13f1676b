"""Turns what a run recorded into a verdict: values are read by a closed grammar, compared, and put in words with units."""
