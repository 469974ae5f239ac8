"""Conformance suites and the corpus."""
