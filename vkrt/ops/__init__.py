"""Operators: each is declared with the rule that turns a node into records, see `registry`."""
