"""gpucourse: a hands-on GPU course at the command line. Importing the package loads nothing else."""

__version__ = "0.1.0"
