"""Reports about memory and times."""
