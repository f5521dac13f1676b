"""The promises about speed, each compared with what a person would type instead. `python -m benchmarks [NAME]`."""
