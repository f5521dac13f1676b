"""The user interface: this package shows everything that a person sees. It only displays; it makes no decisions."""
