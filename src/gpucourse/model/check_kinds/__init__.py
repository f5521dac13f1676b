"""The kinds of checks, one for each file: the program reads `KIND` from it."""
