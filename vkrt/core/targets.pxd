# cython: language_level=3
"""Which target of a compiled program runs on a device."""

from libc.stdint cimport int64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.file cimport File
from vkrt.core.physical cimport Physical
from vkrt.core.records cimport CompiledMethodRow, Records, Text
from vkrt.core.workarounds cimport Workarounds


# A method of the first target that fits. Where none does the error says why, for each.
#   file: the program's, which has weights that may be mapped
#   type_bits: see `fit_method`
cdef extern int find_fitting "vkrt_find_fitting"(
    const Records* records, const Text* method, Device* device, const Physical* physical,
    const Workarounds* known, const File* file, int64_t* type_bits,
    const CompiledMethodRow** found, Error* error) noexcept nogil
