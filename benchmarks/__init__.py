"""What gpucourse promises about speed, compared with what a person would type instead. `python -m benchmarks [NAME]`."""
