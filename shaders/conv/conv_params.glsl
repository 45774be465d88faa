// Operands and parameters of convolutions, transposed ones too.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
WEIGHT(2, weight)
#include "windows.glsl"
PARAM(13, dilation_x)
PARAM(14, dilation_y)
// Of one group: input channels (texels of them in conv_tile.glsl) and channels of the result.
PARAM(15, group_inputs)
PARAM(16, group_channels)
// Whether group_inputs is one texel, as in most first layers: without the loop over them these take
// 0.57 of the time.
CASE(17, has_one_texel)
// 18 and 19 are of taps.glsl.
#define VECTORS 3
#define ENDS 20
#include "epilogue.glsl"
