"""Which target of a compiled program runs on a device."""

from libc.stdint cimport int64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.file cimport File
from vkrt.core.physical cimport Physical
from vkrt.core.records cimport CompiledMethodRow, CompiledTargetRow, Records, Text
from vkrt.core.workarounds cimport Workarounds

cdef extern nogil:
    # The shared weights that a method of a target reads, for one of its uses
    const CompiledMethodRow* shared_row "vkrt_shared_row"(
        const Records* records, const CompiledTargetRow* target, const CompiledMethodRow* method,
        int64_t use)
    # A method of the first target that fits, with the shared weights that it reads. Where none does
    # the error says why, for each.
    #   file: the program's, which has weights that may be mapped
    #   type_bits: see `fit_method`
    int find_fitting "vkrt_find_fitting"(
        const Records* records, const Text* method, Device* device, const Physical* physical,
        const Workarounds* known, const File* file, int64_t* type_bits,
        const CompiledTargetRow** found_target, const CompiledMethodRow** found, Error* error)
