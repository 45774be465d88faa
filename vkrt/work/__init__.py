"""The records between the packages: tensors, work lists, weights and what they are made for."""
