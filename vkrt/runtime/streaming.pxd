from vkrt.core.streamer cimport Streamer as CoreStreamer
from vkrt.executable.rows cimport Rows
from vkrt.memory.reader cimport Reader
from vkrt.runtime.handles cimport Handles


cdef class Streamer:
    cdef CoreStreamer core
    # What the core's thread reads with, and from
    cdef readonly Reader reader
    cdef Rows rows
    cdef Handles handles
