"""What gpucourse promises about speed, measured against what a person would type instead. `python -m benchmarks [NAME]`."""
