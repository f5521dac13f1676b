"""Runs: from what the learner typed to a finished record. Nothing here depends on how a lab is built."""
