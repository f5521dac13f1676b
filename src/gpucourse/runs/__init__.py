"""Runs: from what the learner typed to a finished record. Nothing here knows how a lab is built."""
