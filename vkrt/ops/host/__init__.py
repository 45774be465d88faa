"""Portable kernels that only the host does, in numpy, each declared as operators are."""
