"""Joins of documents: what the relational formulation of the literature says about them, as a reference.

- `templates`: join graphs, reduced, in one form for all that are isomorphic;
- `reference`: the SQL of Hong et al. (SIGMOD 2007), a conjunctive query for each template, on SQLite.
"""
