"""What labs on AWS cost: before they are built, so far, and to the end."""
