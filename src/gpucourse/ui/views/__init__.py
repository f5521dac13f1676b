"""What each command shows: plain functions from the objects of the course to a `View`. Nothing here draws."""
