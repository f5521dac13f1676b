"""A hands-on GPU course for the command line. Importing this package imports no other module."""

__version__ = "0.1.0"
