"""Plain functions that turn the objects of the course into a `View`, the output of a command. Nothing here draws."""
