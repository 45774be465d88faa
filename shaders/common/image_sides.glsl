// X, H and Z of the source's images, X, H and Y of the result's.
PARAM(0, X)
PARAM(1, H)
PARAM(2, Z)
PARAM(3, out_X)
PARAM(4, out_H)
PARAM(5, out_Y)

// The column, row and texel of the result's texel i, where it has Z as the source does.
ivec3 pixel_of(int i) {
  ivec2 outer = DIVIDED(i, Z), pixel = DIVIDED(outer.x, out_X);
  return ivec3(pixel.yx, outer.y);
}
// The image that a row of the result is in, and the row there.
ivec2 image_of(int row) { return DIVIDED(row, out_H); }
