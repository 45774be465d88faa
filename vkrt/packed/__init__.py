"""Packed weights, saved: a file beside the program with its weights as the kernels read them.

The next load maps or reads what is in it and packs nothing. `format` describes the file.
"""
