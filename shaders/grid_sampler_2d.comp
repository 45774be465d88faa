#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// The image at the places a grid names: (x, y) for every pixel of the result, -1 and 1 being the
// image's ends. A place that is not a number lies outside.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
IN(2, grid)
#include "image_sides.glsl"
CASE(6, mode)
CASE(7, padding)
// Whether -1 and 1 are the centres of the corner pixels, else their outer edges.
CASE(8, align_corners)

const int NEAREST = 1;
const int BORDER = 1;
const int REFLECTION = 2;

// The place mirrored at the ends `low` and `low + span` of the image.
float reflected(float place, float low, float span) {
  if (span <= 0.0) return 0.0;
  float away = abs(place - low);
  float flips = floor(away / span);
  float rest = away - flips * span;
  return low + (mod(flips, 2.0) == 0.0 ? rest : span - rest);
}

float pixel(float place, int count) {
  float pixels = float(count);
  precise float p = align_corners != 0 ? (place + 1.0) * 0.5 * (pixels - 1.0)
                                       : ((place + 1.0) * pixels - 1.0) * 0.5;
  if (padding == REFLECTION) {
    p = align_corners != 0 ? reflected(p, 0.0, pixels - 1.0) : reflected(p, -0.5, pixels);
  }
  if (padding == BORDER || padding == REFLECTION) p = clamp(p, 0.0, pixels - 1.0);
  // Comparisons with NaN are false; far outside is outside.
  return p >= -2.0 && p <= pixels + 1.0 ? p : -2.0;
}

vec4 at(int x, int y, int first, int z) {
  if (x < 0 || y < 0 || x >= X || y >= H) return vec4(0);
  return LOAD(source, AT(x, first + y, z, X, Z));
}

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  ivec3 spot = pixel_of(i);
  int column = spot.x, row = spot.y, z = spot.z;
  vec2 place = LOAD(grid, AT(column, row, 0, out_X, 1)).xy;
  float px = pixel(place.x, X);
  float py = pixel(place.y, H);
  int first = image_of(row).x * H;
  vec4 v;
  if (mode == NEAREST) {
    v = at(int(roundEven(px)), int(roundEven(py)), first, z);
  } else {
    float left = floor(px);
    float top = floor(py);
    float u = px - left;
    float w = py - top;
    int x = int(left);
    int y = int(top);
    v = (1.0 - w) * ((1.0 - u) * at(x, y, first, z) + u * at(x + 1, y, first, z))
        + w * ((1.0 - u) * at(x, y + 1, first, z) + u * at(x + 1, y + 1, first, z));
  }
  STORE(result, AT(column, row, z, out_X, Z), v);
}
