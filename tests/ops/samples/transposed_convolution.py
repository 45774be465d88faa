"""Samples of transposed convolutions: strides beyond the kernel, phases without a tap, groups."""

from samples.convolution import one

# x, weight, stride, padding, dilation, output padding, groups, bias
CONV2D = [
    # what generators and U-Nets have: 4x4 with stride 2, 2x2 with stride 2, 3x3 with one more pixel
    ((1, 16, 8, 16), (16, 24, 4, 4), (2, 2), (1, 1), (1, 1), (0, 0), 1, True),
    ((1, 24, 7, 9), (24, 12, 2, 2), (2, 2), (0, 0), (1, 1), (0, 0), 1, True),
    ((2, 10, 5, 6), (10, 7, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1, False),
    ((1, 40, 1, 1), (40, 33, 4, 4), (1, 1), (0, 0), (1, 1), (0, 0), 1, False),
    ((1, 8, 20, 20), (8, 3, 4, 4), (2, 2), (1, 1), (1, 1), (0, 0), 1, True),
    ((1, 12, 4, 4), (12, 130, 3, 3), (1, 1), (1, 1), (1, 1), (0, 0), 1, True),
    ((3, 9, 6, 5), (9, 13, 1, 1), (1, 1), (0, 0), (1, 1), (0, 0), 1, True),
    # unequal numbers along y and x; a stride beyond the kernel, so that pixels have no tap
    ((2, 5, 4, 7), (5, 6, 3, 2), (1, 3), (2, 0), (1, 1), (0, 2), 1, True),
    ((1, 6, 3, 4), (6, 8, 2, 3), (5, 4), (0, 1), (1, 1), (4, 3), 1, True),
    ((1, 1, 2, 3), (1, 5, 16, 8), (8, 4), (4, 2), (1, 1), (0, 0), 1, True),
    # padding that cuts whole pixels of the source off
    ((1, 4, 5, 6), (4, 4, 3, 3), (1, 1), (3, 2), (1, 1), (0, 0), 1, True),
    # dilations that share a factor with the stride and not
    ((1, 6, 5, 6), (6, 10, 3, 3), (2, 2), (2, 1), (2, 4), (1, 3), 1, True),
    ((1, 6, 5, 6), (6, 10, 3, 4), (2, 3), (1, 2), (3, 2), (2, 1), 1, False),
    ((1, 6, 4, 4), (6, 5, 3, 3), (6, 4), (1, 0), (4, 6), (3, 5), 1, True),
    ((2, 8, 4, 3), (8, 9, 3, 3), (1, 1), (2, 2), (2, 3), (0, 1), 1, True),
    # groups, of whole texels and not
    ((1, 16, 6, 6), (16, 12, 4, 4), (2, 2), (1, 1), (1, 1), (0, 0), 2, True),
    ((2, 24, 5, 5), (24, 4, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 3, True),
    ((1, 6, 5, 6), (6, 4, 3, 3), (2, 2), (1, 1), (1, 1), (0, 1), 2, True),
    ((2, 10, 4, 4), (10, 3, 2, 2), (2, 2), (0, 0), (1, 1), (0, 0), 5, False),
    ((1, 12, 4, 5), (12, 1, 3, 3), (2, 1), (1, 1), (1, 2), (1, 0), 3, True),
    # depthwise, and depthwise with more channels than it had
    ((1, 10, 6, 7), (10, 1, 4, 4), (2, 2), (1, 1), (1, 1), (0, 0), 10, True),
    ((2, 8, 5, 5), (8, 1, 3, 5), (1, 3), (1, 2), (2, 2), (0, 1), 8, False),
    ((1, 5, 4, 4), (5, 3, 2, 2), (2, 2), (0, 0), (1, 1), (0, 0), 5, True),
    ((2, 1, 5, 5), (1, 1, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1, True),
]

CONV1D = [
    ((1, 12, 20), (12, 10, 4), 2, 1, 1, 0, 1, True),
    ((2, 7, 9), (7, 6, 16), 8, 4, 1, 0, 1, False),
    ((2, 6, 11), (6, 5, 3), 3, 0, 2, 1, 3, True),
    ((1, 8, 10), (8, 1, 5), 2, 2, 1, 1, 8, True),
]


SAMPLES = [
    *(one(row) for row in (*CONV2D, *CONV1D)),
    *(one(row, computed=True) for row in (CONV2D[2], CONV2D[15], CONV2D[17], CONV2D[20],
                                           CONV1D[0])),
    *(one(row, (0, 1.797e308)) for row in (CONV2D[0], CONV2D[2], CONV2D[17], CONV1D[0])),
]
