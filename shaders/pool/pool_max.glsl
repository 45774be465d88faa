// Largest element of windows over up to three spatial dimensions; WITH_INDICES also writes where it
// lies in its image, as (z * H + y) * W + x.
#include "pool.glsl"

OUT(0, result)
#ifdef WITH_INDICES
OUT_AS(1, indices, i32)
IN(2, source)
#else
IN(1, source)
#endif

// From `first` the first place that is not before the source.
int entered(int first, int dilation, bool is_constant) {
  return first + divided_exactly(max(-first, 0) + dilation - 1, dilation, is_constant).x * dilation;
}

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  Window w = window_of(i);
  ivec3 first = ivec3(entered(w.first.x, dilation_x, IS_CONSTANT(dilation_x)),
                      entered(w.first.y, dilation_y, IS_CONSTANT(dilation_y)),
                      entered(w.first.z, dilation_z, IS_CONSTANT(dilation_z)));
  ivec3 end = min(w.end, ivec3(X, H, D));
  vec4 best = vec4(uintBitsToFloat(0xff800000u));  // -infinity
  // Where all are -infinity torch names the window's first element inside the image.
  ivec4 index = ivec4((first.z * H + first.y) * X + first.x);
  for (int z = first.z; z < end.z; z += dilation_z) {
    for (int y = first.y; y < end.y; y += dilation_y) {
      for (int x = first.x; x < end.x; x += dilation_x) {
        vec4 v = LOAD(source, PIXEL(w, x, y, z));
        bvec4 better = greaterThan(v, best);
        // NaN wins and stays.
        for (int k = 0; k < 4; k++) better[k] = better[k] || isnan(v[k]);
        best = mix(best, v, better);
        index = ivec4(better) * ((z * H + y) * X + x) + ivec4(not(better)) * index;
      }
    }
  }
  int valid = VALID(w.z, channels);
  STORE(result, RESULT(w), mask_padding(best, valid));
#ifdef WITH_INDICES
  STORE_AS(indices, RESULT(w), mask_padding(index, valid), i32);
#endif
}
