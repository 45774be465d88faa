"""The records between the rooms: tensors, work lists, weights and what they are made for."""
