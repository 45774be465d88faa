"""Probe: whether a driver reads the pages of a file in place, found out before it is relied on.

Drivers have been seen to import the pages of a read-only mapping without a word and to lose the
device with the first submission that reads them. So a driver of which nothing is known copies the
first pages of the program's file in a device of its own. The probe result is kept: "no" before
the probe begins, so that a process that does not survive it is the last one to try.
"""

from vkrt.core.device cimport Device
from vkrt.core.file cimport File
from vkrt.core.physical cimport Physical

cdef extern nogil:
    # Whether the driver reads imported pages of a file: known from an earlier probe, or tried now.
    # Where the probe itself is not possible, no probe result is kept and the answer is no.
    #   keeps: the probe result outlives the process, in a file of the user's cache folder
    bint reads_files "vkrt_reads_files"(const Device* device, const Physical* physical,
                                        const File* file, bint keeps)
