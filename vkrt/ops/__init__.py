"""Operators: each turns a node of the graph into records, see `registry` and `lowering`."""
