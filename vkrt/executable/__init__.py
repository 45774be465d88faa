"""What the runtime carries out, as records of numbers and names: everything is decided."""
