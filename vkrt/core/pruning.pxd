"""Shader modules without the code that their specialization constants never reach.

One module serves every kind and every size that may be compiled in, so most of its blocks are dead
in any one pipeline: nine tenths of copy.comp are. Drivers leave dead blocks out too, but first they
translate all of them, and lavapipe keeps the memory in which it does that as long as the pipeline
lives. Here they are left out before: processes of seven networks have 4 to 15 MB less anonymous
memory, 7 to 20 % of it.

What is known are constants, and the operations on them that `fold` has. A selection by a known
condition becomes a branch; blocks that nothing reaches any more go, with their decorations; a phi
with one way left is a copy. The specialization constants stay where they are, so a pipeline is made
of the pruned module with the same values as of the whole one, and of no others.
"""

from libc.stdint cimport uint32_t

from vkrt.core.error cimport Error
from vkrt.core.pipeline cimport Constant

cdef extern nogil:
    # A module without what is never reached with these constants, in memory that the caller frees;
    # NULL where all of it may be reached. Whatever the words are, none beyond them is touched.
    #   constants: the specialization constants that have another value than their default
    int prune_module "vkrt_prune_module"(const uint32_t* words, size_t nbytes,
                                         const Constant* constants, size_t count, uint32_t** pruned,
                                         size_t* pruned_bytes, Error* error)
