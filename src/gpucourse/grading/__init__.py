"""Verdicts from the record of a run: values are read with a closed grammar, compared, and formatted with units."""
