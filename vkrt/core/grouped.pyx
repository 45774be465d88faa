cdef const char* grouped(uint64_t number, char* text) noexcept nogil:
    cdef char[GROUPED] backwards
    cdef int length = 0
    cdef int i
    while True:
        if length & 3 == 3:
            backwards[length] = c','
            length += 1
        backwards[length] = <char>(c'0' + number % 10)
        length += 1
        number = number // 10
        if number == 0:
            break
    for i in range(length):
        text[i] = backwards[length - 1 - i]
    text[length] = 0
    return text
