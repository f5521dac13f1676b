"""The commands: each parses its command line, calls one function, and shows its result."""
