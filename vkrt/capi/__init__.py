"""The C library: `vkrt.h` and `libvkrt`, see README.md; Python hosts do not need it."""
