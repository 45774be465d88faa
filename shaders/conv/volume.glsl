// What convolutions over three spatial dimensions have beyond those of two, whose images are the
// slices of a volume: rows of a tensor are (volume, slice, row). kernel_y of windows.glsl counts the
// rows of all slices of the kernel.
PARAM(24, D)
PARAM(25, out_D)
PARAM(26, kernel_z)
PARAM(27, stride_z)
PARAM(28, padding_z)
PARAM(29, dilation_z)
// Rows of one slice of the kernel
PARAM(30, kernel_h)

// Of a row of the result: the first row of its volume in the source, its slice, and its row there.
ivec3 volume_of(int row) {
  ivec2 slice_row = image_of(row), volume_slice = DIVIDED(slice_row.x, out_D);
  return ivec3(volume_slice.x * D * H, volume_slice.y, slice_row.y);
}
