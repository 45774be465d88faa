"""The thread of a streamer, which carries out the reloads."""

from vkrt.core.streamer cimport Streamer

cdef extern nogil:
    # What the thread runs: one epoch after the other, until it is to stop
    void* reload_weights "vkrt_reload_weights"(void* streamer)
    # Lets the device go on where it waits for reloads that will not come. The streamer is
    # `stranded` where that fails. Under the lock.
    void let_go "vkrt_let_go"(Streamer* streamer)
