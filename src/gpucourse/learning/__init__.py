"""What a learner has to show for a run: answers, checks, points, reports. Stands on runs."""
