"""Other ways to do the same, measured in the same run."""
