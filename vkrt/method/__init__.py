"""A method of a program on a device: prepared once, run often."""
