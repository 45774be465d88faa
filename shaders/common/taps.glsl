// The taps of a transposed convolution's kernel that meet a pixel of the result: those for which
// place - k * dilation is a multiple of the stride, `place` being the pixel's plus the padding. One
// follows the other every stride / gcd(stride, dilation) taps (`tap_step`).
// Goes on from conv_params.glsl.

PARAM(21, tap_step_x)
PARAM(22, tap_step_y)

// The first of them; the end of the kernel if there is none.
int first_tap(int place, int stride, int dilation, int tap_step, int kernel) {
  for (int k = 0; k < tap_step; k++) {
    if (place % stride == k * dilation % stride) return k;
  }
  return kernel;
}
