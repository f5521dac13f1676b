"""Labs: deploy, look at and take down the machines that runs take place on. Stands on runs."""
