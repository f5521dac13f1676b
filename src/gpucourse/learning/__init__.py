"""The work that a learner submits: answers, checks, points, reports. May import `runs`."""
