"""From a program's description to its graph: tensors, nodes, states and symbols."""
