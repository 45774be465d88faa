"""What is known about drivers beyond what they report."""
