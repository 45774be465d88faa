// Lines of a weight of 4 bits (q4.glsl) in groups that are whole texels of 32 elements: all of them,
// or those of some columns, and of each the part that meets the source.

// Texels of that part, and of a group.
PARAM(8, texels)
PARAM(9, group_texels)
// In texels: where the part of the first line begins, and from one line to the next; the same of the
// scales of 4 columns, from one group to the next.
PARAM(10, first_texel)
PARAM(11, line_texels)
PARAM(12, first_scale)
PARAM(13, scale_texels)

int line_at(int column) { return first_texel + min(column, columns - 1) * line_texels; }
// The scales of the group that has texel t of the part.
int scales_at(int t) { return first_scale + QUOTIENT(t, group_texels) * scale_texels; }
