"""The commands: each parses what was typed, calls one action, and shows what it gave back."""
