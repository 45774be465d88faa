"""Atomic numbers and pointers. Every thread sees all of these operations in one order."""

from libc.stdint cimport uint64_t

cdef extern from * nogil:
    """
    #ifndef VKRT_CORE_ATOMIC
    #define VKRT_CORE_ATOMIC
    #include <stddef.h>
    #include <stdint.h>
    #define VKRT_ADD(place, change) __atomic_add_fetch(place, change, __ATOMIC_SEQ_CST)
    #define VKRT_READ(place) __atomic_load_n(place, __ATOMIC_SEQ_CST)
    #define VKRT_WRITE(place, value) __atomic_store_n(place, value, __ATOMIC_SEQ_CST)
    #define VKRT_SWAP(place, value) __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST)
    #define VKRT_TAKE(place) __atomic_exchange_n(place, 0, __ATOMIC_SEQ_CST)
    #define VKRT_CHANGE(place, from, to) \\
        __atomic_compare_exchange_n(place, from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
    static inline int vkrt_change(int* place, int from, int to) {
        return VKRT_CHANGE(place, &from, to);
    }
    static inline int vkrt_change64(uint64_t* place, uint64_t from, uint64_t to) {
        return VKRT_CHANGE(place, &from, to);
    }
    static inline int vkrt_join(int* users) {
        int now = VKRT_READ(users);
        while (now > 0 && !VKRT_CHANGE(users, &now, now + 1)) {}
        return now > 0;
    }
    static inline void vkrt_raise(uint64_t* place, uint64_t value) {
        uint64_t now = VKRT_READ(place);
        while (now < value && !VKRT_CHANGE(place, &now, value)) {}
    }
    #endif
    """
    int atomic_read "VKRT_READ"(int* place)
    uint64_t atomic_read64 "VKRT_READ"(uint64_t* place)
    void atomic_write "VKRT_WRITE"(int* place, int value)
    void atomic_write64 "VKRT_WRITE"(uint64_t* place, uint64_t value)
    # The new value
    int atomic_add "VKRT_ADD"(int* place, int change)
    uint64_t atomic_add64 "VKRT_ADD"(uint64_t* place, uint64_t change)
    # The old one
    int atomic_swap "VKRT_SWAP"(int* place, int value)
    # Puts a value in the place of another one; whether that was there.
    bint atomic_change "vkrt_change"(int* place, int value, int new)
    bint atomic_change64 "vkrt_change64"(uint64_t* place, uint64_t value, uint64_t new)
    # The greater of what is there and the value
    void atomic_raise "vkrt_raise"(uint64_t* place, uint64_t value)
    # One user more, unless there is none left: then it says no.
    bint atomic_join "vkrt_join"(int* users)
    # A handle, in whose place there is none from now on: one of those who close it gets it.
    void* atomic_take "VKRT_TAKE"(void** place)
    uint64_t atomic_take64 "VKRT_TAKE"(uint64_t* place)
