"""The user interface: everything that a person sees goes through here. Nothing here decides what happens."""
