from libc.stdlib cimport calloc, free
from libc.string cimport memmove

from vkrt.capi.failure cimport refuse
from vkrt.capi.table cimport VKRT_OK
from vkrt.core.error cimport VKRT_ERROR_CLOSED, VKRT_ERROR_INPUT
from vkrt.core.grown cimport grown
from vkrt.core.threads cimport (
    pthread_cond_broadcast, pthread_cond_t, pthread_cond_wait, pthread_mutex_lock, pthread_mutex_t,
    pthread_mutex_unlock,
)

cdef extern from * nogil:
    """
    #include <pthread.h>
    static pthread_mutex_t vkrt_handles_lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t vkrt_handles_released = PTHREAD_COND_INITIALIZER;
    /* Of the numbers of compiled programs; Python's never grow as large. */
    #define VKRT_COMPILED_BIT (~((size_t)-1 >> 1))
    """
    pthread_mutex_t lock "vkrt_handles_lock"
    pthread_cond_t released "vkrt_handles_released"
    const size_t COMPILED_BIT "VKRT_COMPILED_BIT"


cdef struct Entry:
    size_t number
    # Of the program: its own, or that of the state's
    size_t program_number
    LoadedProgram* program  # NULL: a state's entry
    MethodState* state
    ProgramMethod* method
    # Calls that are at it, of a program
    int users
    # In the list of programs that wait for those
    Entry* next


# In the order of their numbers
cdef Entry** entries
cdef size_t entry_count
cdef size_t last_number
# Closed handles whose programs somebody holds
cdef Entry* closing


cdef bint is_compiled_handle(size_t number) noexcept nogil:
    return number & COMPILED_BIT != 0


cdef size_t position_of(size_t number) noexcept nogil:
    """Of the entry with a number; `entry_count` where there is none."""
    cdef size_t first = 0, end = entry_count, middle
    while first < end:
        middle = (first + end) // 2
        if entries[middle].number < number:
            first = middle + 1
        else:
            end = middle
    return first if first < entry_count and entries[first].number == number else entry_count


cdef Entry* add_entry() noexcept nogil:
    """A new one at the end; NULL where the host is out of memory."""
    global entries, entry_count, last_number
    cdef Entry* made
    cdef Entry** room = <Entry**>grown(entries, entry_count, sizeof(Entry*))
    if room == NULL:
        return NULL
    entries = room
    made = <Entry*>calloc(1, sizeof(Entry))
    if made != NULL:
        last_number += 1
        made.number = last_number | COMPILED_BIT
        entries[entry_count] = made
        entry_count += 1
    return made


cdef void remove_at(size_t position) noexcept nogil:
    global entry_count
    entry_count -= 1
    memmove(entries + position, entries + position + 1, (entry_count - position) * sizeof(Entry*))


cdef Entry* find_entry(size_t number, bint is_state) noexcept nogil:
    """NULL where there is none of this sort."""
    cdef size_t position = position_of(number)
    if position == entry_count or (entries[position].program == NULL) != is_state:
        return NULL
    return entries[position]


cdef int closed(vkrt_failure* failure, const char* what) noexcept nogil:
    return refuse(failure, VKRT_ERROR_CLOSED, b"the %s is closed, or never was one", what)


# Programs

cdef size_t add_program(LoadedProgram* program) noexcept nogil:
    cdef Entry* made
    cdef size_t number = 0
    pthread_mutex_lock(&lock)
    made = add_entry()
    if made != NULL:
        made.program, made.program_number, number = program, made.number, made.number
    pthread_mutex_unlock(&lock)
    return number


cdef int hold_program(vkrt_failure* failure, size_t number, LoadedProgram** program) noexcept nogil:
    cdef Entry* entry
    pthread_mutex_lock(&lock)
    entry = find_entry(number, False)
    if entry != NULL:
        entry.users += 1
        program[0] = entry.program
    pthread_mutex_unlock(&lock)
    return VKRT_OK if entry != NULL else closed(failure, b"program")


cdef Entry* held_entry(size_t number) noexcept nogil:
    """Of a program that somebody holds, also where its handle is closed."""
    cdef Entry* entry = find_entry(number, False)
    cdef Entry* waiting = closing
    while entry == NULL and waiting != NULL:
        if waiting.number == number:
            entry = waiting
        waiting = waiting.next
    return entry


cdef void release_program(size_t number) noexcept nogil:
    pthread_mutex_lock(&lock)
    held_entry(number).users -= 1
    pthread_cond_broadcast(&released)
    pthread_mutex_unlock(&lock)


cdef void remove_entries(size_t program) noexcept nogil:
    """Closes the handles of a program's states."""
    cdef size_t i = 0
    while i < entry_count:
        if entries[i].program == NULL and entries[i].program_number == program:
            free(entries[i])
            remove_at(i)
        else:
            i += 1


cdef int remove_program(vkrt_failure* failure, size_t number,
                        LoadedProgram** program) noexcept nogil:
    global closing
    cdef Entry* entry
    cdef Entry** place
    pthread_mutex_lock(&lock)
    entry = find_entry(number, False)
    if entry != NULL:
        remove_at(position_of(number))
        remove_entries(number)
        entry.next = closing
        closing = entry
        while entry.users > 0:
            pthread_cond_wait(&released, &lock)
        place = &closing
        while place[0] != entry:
            place = &place[0].next
        place[0] = entry.next
        program[0] = entry.program
    pthread_mutex_unlock(&lock)
    if entry == NULL:
        return closed(failure, b"program")
    free(entry)
    return VKRT_OK


# States

cdef size_t add_state(size_t program, MethodState* state) noexcept nogil:
    cdef Entry* made = NULL
    cdef size_t number = 0
    pthread_mutex_lock(&lock)
    # A program whose handle was closed meanwhile has no states that anybody can name.
    if find_entry(program, False) != NULL:
        made = add_entry()
    if made != NULL:
        made.program_number, made.state, made.method = program, state, state.method
        number = made.number
    pthread_mutex_unlock(&lock)
    return number


cdef int find_state_owner(vkrt_failure* failure, size_t number, size_t* program,
                          ProgramMethod** method) noexcept nogil:
    cdef Entry* entry
    pthread_mutex_lock(&lock)
    entry = find_entry(number, True)
    if entry != NULL:
        program[0], method[0] = entry.program_number, entry.method
    pthread_mutex_unlock(&lock)
    return VKRT_OK if entry != NULL else closed(failure, b"state")


cdef int find_in(vkrt_failure* failure, ProgramMethod* method, size_t number, bint removes,
                 MethodState** state) noexcept nogil:
    cdef Entry* entry
    cdef ProgramMethod* owner = NULL
    pthread_mutex_lock(&lock)
    entry = find_entry(number, True)
    if entry != NULL:
        owner = entry.method
        if owner == method:
            state[0] = entry.state
            if removes:
                remove_at(position_of(number))
                free(entry)
    pthread_mutex_unlock(&lock)
    if owner == NULL:
        return closed(failure, b"state")
    if owner != method:
        return refuse(failure, VKRT_ERROR_INPUT, b"the state is not one of method '%.*s'",
                      <int>min(method.name.count, <long long>100),
                      method.program.program.records.texts + method.name.first)
    return VKRT_OK


cdef int find_state(vkrt_failure* failure, ProgramMethod* method, size_t number,
                    MethodState** state) noexcept nogil:
    if number == 0:
        state[0] = &method.first
        return VKRT_OK
    return find_in(failure, method, number, False, state)


cdef int remove_state(vkrt_failure* failure, ProgramMethod* method, size_t number,
                      MethodState** state) noexcept nogil:
    return find_in(failure, method, number, True, state)
