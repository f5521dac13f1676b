"""The face: everything that reaches a person's eyes goes through here. Nothing here decides what happens."""
