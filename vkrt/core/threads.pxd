# cython: language_level=3
"""POSIX threads and atomic numbers, as far as the core uses them."""

from libc.stdint cimport uint64_t

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    ctypedef struct pthread_t:
        pass
    int pthread_mutex_init(pthread_mutex_t* mutex, const void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* mutex)
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)
    int pthread_cond_destroy(pthread_cond_t* condition)
    int pthread_cond_signal(pthread_cond_t* condition)
    int pthread_cond_broadcast(pthread_cond_t* condition)
    int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex)
    int pthread_detach(pthread_t thread)
    int pthread_atfork(void (*prepare)() noexcept nogil, void (*parent)() noexcept nogil,
                       void (*child)() noexcept nogil)

cdef extern from * nogil:
    """
    #ifndef VKRT_CORE_THREADS
    #define VKRT_CORE_THREADS
    #include <pthread.h>
    #include <signal.h>
    #include <stdint.h>
    #include <time.h>
    #define VKRT_ADD(place, change) __atomic_add_fetch(place, change, __ATOMIC_ACQ_REL)
    #define VKRT_READ(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
    #define VKRT_WRITE(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
    #define VKRT_TAKE(place) __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL)
    static inline int vkrt_join(int* users) {
        int now = VKRT_READ(users);
        while (now > 0 && !__atomic_compare_exchange_n(users, &now, now + 1, 0, __ATOMIC_ACQ_REL,
                                                       __ATOMIC_ACQUIRE)) {}
        return now > 0;
    }
    static inline void vkrt_raise(uint64_t* place, uint64_t value) {
        uint64_t now = VKRT_READ(place);
        while (now < value && !__atomic_compare_exchange_n(place, &now, value, 0, __ATOMIC_ACQ_REL,
                                                           __ATOMIC_ACQUIRE)) {}
    }
    static inline int vkrt_change(int* place, int from, int to) {
        return __atomic_compare_exchange_n(place, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    #define VKRT_SWAP(place, value) __atomic_exchange_n(place, value, __ATOMIC_ACQ_REL)
    static inline void vkrt_nap(long nanoseconds) {
        struct timespec time = {0, nanoseconds};
        nanosleep(&time, NULL);
    }

    /* Starts a thread in which no handler of the host's signals runs, but for those of its own
       faults; 0 or the system's errno. */
    static inline int vkrt_start_thread(pthread_t* thread, void* (*work)(void*), void* data,
                                        const char* name) {
        static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
        sigset_t blocked, before;
        pthread_attr_t attributes;
        size_t stack = 0, least = (size_t)8 << 20; /* a driver's compiler; musl gives 128 KiB */
        unsigned k;
        int error;
        pthread_attr_init(&attributes);
        if (!pthread_attr_getstacksize(&attributes, &stack) && stack < least)
            pthread_attr_setstacksize(&attributes, least);
        sigfillset(&blocked);
        for (k = 0; k < sizeof faults / sizeof *faults; k++) sigdelset(&blocked, faults[k]);
        pthread_sigmask(SIG_SETMASK, &blocked, &before);
        error = pthread_create(thread, &attributes, work, data);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    #ifdef __linux__
        if (!error) pthread_setname_np(*thread, name);
    #else
        (void)name;
    #endif
        return error;
    }

    /* A condition whose timed waits go by a clock that nobody sets; 0 or the system's errno. */
    static inline int vkrt_make_condition(pthread_cond_t* condition) {
        pthread_condattr_t attributes;
        int error = pthread_condattr_init(&attributes);
        if (error) return error;
        error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        if (!error) error = pthread_cond_init(condition, &attributes);
        pthread_condattr_destroy(&attributes);
        return error;
    }

    /* Waits for so many nanoseconds at most, less than a second. */
    static inline void vkrt_wait_awhile(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                        long nanoseconds) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += nanoseconds;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec += 1;
        }
        pthread_cond_timedwait(condition, mutex, &until);
    }

    static inline void vkrt_join_thread(pthread_t thread) {
        pthread_join(thread, NULL);
    }
    #endif
    """
    # The new value
    int atomic_add "VKRT_ADD"(int* place, int change)
    int atomic_read "VKRT_READ"(int* place)
    int start_thread "vkrt_start_thread"(pthread_t* thread, void* (*work)(void*) noexcept nogil,
                                         void* data, const char* name)
    void join_thread "vkrt_join_thread"(pthread_t thread)
    int make_condition "vkrt_make_condition"(pthread_cond_t* condition)
    void wait_awhile "vkrt_wait_awhile"(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                        long nanoseconds)
    void atomic_write "VKRT_WRITE"(int* place, int value)
    uint64_t atomic_add64 "VKRT_ADD"(uint64_t* place, uint64_t change)
    uint64_t atomic_read64 "VKRT_READ"(uint64_t* place)
    # The old one
    int atomic_swap "VKRT_SWAP"(int* place, int value)
    # Puts a value in the place of another one; whether that was there.
    bint atomic_change "vkrt_change"(int* place, int value, int new)
    # A handle, in whose place there is none from now on: one of those who close it gets it.
    void* atomic_take "VKRT_TAKE"(void** place)
    # One user more, unless there is none left: then it says no.
    bint atomic_join "vkrt_join"(int* users)
    # The greater of what is there and the value
    void atomic_raise "vkrt_raise"(uint64_t* place, uint64_t value)
    # Less than a second
    void nap "vkrt_nap"(long nanoseconds)
