"""Tests of Sardonyx."""
