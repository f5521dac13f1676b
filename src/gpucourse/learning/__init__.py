"""What a learner has to show: answers, checks, points, reports. May import `runs`."""
