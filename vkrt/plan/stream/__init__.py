"""Weights that do not fit: which stay, and what is loaded and released when."""
