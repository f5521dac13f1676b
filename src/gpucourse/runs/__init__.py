"""Runs, from the command that the learner types to a finished record. This package does not depend on how a lab is built."""
