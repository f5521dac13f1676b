"""The kinds of checks, one for each file: `KIND` is what the program takes from it."""
