"""The output of each command: plain functions from the objects of the course to a `View`. Nothing here draws."""
