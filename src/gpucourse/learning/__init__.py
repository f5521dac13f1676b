"""The learner's work: answers, checks, points and reports. This package may import `runs`."""
