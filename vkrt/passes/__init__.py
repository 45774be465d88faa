"""Rewrites of a graph before it is lowered: see README.md."""
