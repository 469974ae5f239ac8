"""Benchmarks: Sardonyx beside its peers, in one run, as JSON, a table and plots. `python -m benchmarks --help`."""
