"""A method of a program on a device: loaded once, run often."""
