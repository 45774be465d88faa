"""A program on a device, and how it is loaded."""
