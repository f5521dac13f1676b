"""The user interface: everything that a person sees passes through here. Nothing here decides what happens."""
