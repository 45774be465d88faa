"""Files that are mistaken for a program, and files that may be written over."""
