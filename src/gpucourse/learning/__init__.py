"""The work that a learner submits: answers, checks, points and reports. This package may import `runs`."""
