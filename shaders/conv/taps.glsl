// The taps of a transposed convolution's kernel that meet a pixel of the result: those for which
// place - k * dilation is a multiple of the stride, `place` being the pixel's plus the padding. One
// follows the other every stride / gcd(stride, dilation) taps (`tap_step`).
// Goes on from conv_params.glsl.

PARAM(18, tap_step_x)
PARAM(19, tap_step_y)

// Along one side of the image: the first tap (the end of the kernel if there is none), the place in
// the source that it meets, and how far behind it the next tap's is.
struct Taps { int first, from, step; };

Taps taps_of(int place, int stride, int dilation, int tap_step, int kernel, bool is_constant) {
  ivec2 wanted = divided_exactly(place, stride, is_constant);
  ivec2 each = divided_exactly(dilation, stride, is_constant);
  // Tap k meets place - k * dilation, which is stride * from + rest.
  int from = wanted.x, rest = wanted.y;
  int k = 0;
  for (; k < tap_step && rest != 0; k++) {
    from -= each.x;
    rest -= each.y;
    if (rest < 0) {
      from--;
      rest += stride;
    }
  }
  return Taps(rest == 0 ? k : kernel, from,
              divided_exactly(tap_step * dilation, stride, is_constant).x);
}
#define TAPS(place, side) \
  taps_of(place, stride_##side, dilation_##side, tap_step_##side, kernel_##side, \
          IS_CONSTANT(stride_##side))
