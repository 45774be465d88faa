"""Files: those that are taken for a program, and those that may be written over."""
