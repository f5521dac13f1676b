"""The cost of labs on AWS: before they are built, so far, and to the end."""
