"""Plots of measurements, as PNG and SVG."""
