"""Generators of documents, expressions and subscription populations."""
