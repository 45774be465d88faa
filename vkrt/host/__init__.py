"""Kernels of the program outside of its delegates, in numpy."""

from vkrt.host.kernels import has_kernel, run_kernel

__all__ = ["has_kernel", "run_kernel"]
