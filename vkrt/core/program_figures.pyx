from libc.stdint cimport int64_t

from vkrt.core.flat cimport is_text
from vkrt.core.records cimport MemoryFiguresRow, WeightRecordRow


cdef uint64_t placed(const Records* records, const ExecutableRow* executable,
                     const char* placement) noexcept nogil:
    """Bytes of the weights of a placement."""
    cdef const WeightRecordRow* weight = records.weight_record + executable.placements.first
    cdef uint64_t nbytes = 0
    cdef int64_t i
    for i in range(executable.placements.count):
        if is_text(records, &weight[i].placement, placement):
            nbytes += <uint64_t>weight[i].nbytes
    return nbytes


cdef uint64_t kept_bytes(const ProgramFigures* figures) noexcept nogil:
    return (figures.weights + figures.pool + figures.uploads + figures.state
            + figures.activations + figures.host)


cdef void add(ProgramFigures* figures, const Records* records, const ExecutableRow* executable,
              int64_t sign) noexcept nogil:
    cdef const MemoryFiguresRow* row = &executable.figures
    cdef uint64_t factor = <uint64_t>sign  # which wraps around as it should
    figures.mapped += factor * placed(records, executable, b"map")
    figures.streamed += factor * placed(records, executable, b"stream")
    figures.weights += factor * <uint64_t>row.weight_bytes
    figures.pool += factor * <uint64_t>row.pool_bytes
    figures.uploads += factor * <uint64_t>row.upload_bytes
    figures.state += factor * <uint64_t>row.state_bytes
    figures.activations += factor * <uint64_t>row.activation_bytes
    figures.host += factor * <uint64_t>row.host_bytes


cdef void add_figures(ProgramFigures* figures, const Records* records,
                      const ExecutableRow* executable) noexcept nogil:
    cdef const MemoryFiguresRow* row = &executable.figures
    figures.planned_peak = max(figures.planned_peak, kept_bytes(figures) + <uint64_t>row.peak_bytes)
    figures.staging = max(figures.staging, <uint64_t>row.staging_bytes)
    add(figures, records, executable, 1)


cdef void remove_figures(ProgramFigures* figures, const Records* records,
                         const ExecutableRow* executable) noexcept nogil:
    add(figures, records, executable, -1)
