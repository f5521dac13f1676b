"""What labs on AWS cost: before, meanwhile, to the end."""
