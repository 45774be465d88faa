"""The records between the packages: tensors, command lists, weights and what they are made for."""
