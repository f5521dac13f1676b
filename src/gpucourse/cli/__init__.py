"""The commands: each parses what was typed, calls one function, and shows its result."""
