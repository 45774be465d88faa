"""The version of vkrt."""

__version__ = "0.1.0"
