"""Verdicts from the record of a run: values are read by a closed grammar, compared, and formatted with units."""
