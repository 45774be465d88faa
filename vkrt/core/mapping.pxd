# cython: language_level=3
"""Whether a device reads the weights of a compiled program in its file, where they are."""

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.file cimport File
from vkrt.core.physical cimport Physical
from vkrt.core.records cimport CompiledMethodRow, Records
from vkrt.core.workarounds cimport Workarounds


# Refuses (VKRT_ERROR_UNSUPPORTED) a method with weights that are to be mapped and cannot be. A
# driver of which nothing is known is tried first (`vkrt.core.map_trial`).
cdef extern int check_mapped "vkrt_check_mapped"(
    const Records* records, const CompiledMethodRow* method, const Device* device,
    const Physical* physical, const File* file, const Workarounds* known,
    Error* error) noexcept nogil
