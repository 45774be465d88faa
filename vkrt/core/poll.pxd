# Asks, some ten to fifty times a second, whether to go on, in the thread that waits: anything but 0
# ends the wait before the device or the reader is done.
ctypedef int (*Poll)(void* data) noexcept nogil
