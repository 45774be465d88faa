"""Compiled programs: files of executables with everything that they read."""
