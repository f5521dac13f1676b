"""From what a run left behind to a verdict: values are read by a closed grammar, compared, and put in words with units."""
