"""POSIX threads, as far as the core uses them."""

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
    #include <time.h>
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
    int start_thread "vkrt_start_thread"(pthread_t* thread, void* (*work)(void*) noexcept nogil,
                                         void* data, const char* name)
    void join_thread "vkrt_join_thread"(pthread_t thread)
    int make_condition "vkrt_make_condition"(pthread_cond_t* condition)
    void wait_awhile "vkrt_wait_awhile"(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                        long nanoseconds)
    # Less than a second
    void nap "vkrt_nap"(long nanoseconds)
