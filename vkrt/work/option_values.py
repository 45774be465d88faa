"""The words that options of a load take, and their defaults, in a module that imports nothing."""

# What is to be small: bytes of activations if that takes hardly any time, bytes, or time
PREFERENCES = ("balanced", "memory", "speed")
# How weights get to the kernels: see `vkrt.load`
WEIGHTS = ("auto", "map", "direct", "copy", "stream")
# How caches of keys and values are kept: as the program has them, or in 8 bits
CACHES = ("float", "int8")
# When the blocks of weights are allocated: as they are reached, or all before anything is packed
ORDERS = ("lazy", "eager")
# Bytes of the staging buffer at most
DEFAULT_CHUNK = 8 << 20
