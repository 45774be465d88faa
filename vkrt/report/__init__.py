"""What is said about memory and times."""
