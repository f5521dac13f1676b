"""Measure each promise about speed against what a person would type instead: `python -m benchmarks [NAME]`."""
