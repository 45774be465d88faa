"""Dynamic shapes: what calls of a method may change, and the graph at the sizes of one call."""
