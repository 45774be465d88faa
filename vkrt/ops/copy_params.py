"""The ids of the parameters of a strided copy, which shaders/common/copy.glsl explains."""

DIMS, MODE, PACKED, FIRST, COUNT, RUN, GAP, OFFSET, BASE = 0, 1, 5, 6, 7, 8, 9, 10, 11
# The size and the stride of the innermost dimension; those of the others follow.
FIRST_DIM = 15
