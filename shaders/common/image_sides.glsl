// X, H and Z of the source's images, X, H and Y of the result's.
PARAM(0, X)
PARAM(1, H)
PARAM(2, Z)
PARAM(3, out_X)
PARAM(4, out_H)
PARAM(5, out_Y)
