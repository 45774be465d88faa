// Sizes of what slides windows over images, and of a window and its steps.
#include "image_sides.glsl"
PARAM(6, channels)
#ifdef KERNEL_X_IS_CASE
CASE(7, kernel_x)
#else
PARAM(7, kernel_x)
#endif
PARAM(8, kernel_y)
PARAM(9, stride_x)
PARAM(10, stride_y)
PARAM(11, padding_x)
PARAM(12, padding_y)
