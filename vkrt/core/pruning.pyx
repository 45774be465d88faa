from libc.stdint cimport INT32_MAX, int32_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from vkrt.core.constant_folding cimport Code, evaluate, length, opcode, valid
from vkrt.core.error cimport VKRT_ERROR_FORMAT, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.opcodes cimport *

# What `is_reached` says of a block: it is; or it is not, and has to be there as the end of a loop
# or a selection.
cdef enum:
    REACHED = 1
    NEEDED = 2
    # The specification's limit
    MOST_IDS = 0x3FFFFF


cdef int prune_module(const uint32_t* words, size_t nbytes, const Constant* constants,
                      size_t count, uint32_t** pruned, size_t* pruned_bytes,
                      Error* error) noexcept nogil:
    cdef Code code
    cdef int status
    pruned[0], pruned_bytes[0] = NULL, 0
    memset(&code, 0, sizeof(code))
    code.words, code.size = words, <int>(nbytes // 4)
    code.constants, code.constant_count = constants, count
    if nbytes % 4 or nbytes // 4 > <size_t>(INT32_MAX // 4) or code.size < HEADER_WORDS \
            or words[0] != MAGIC or words[3] > MOST_IDS:
        return fail(error, VKRT_ERROR_FORMAT, b"not a SPIR-V module")
    # An id beyond the bound is none: it counts as 0, which is no id.
    code.bound = max(words[3], <uint32_t>1)
    if check(&code, error):
        return error.status
    # One block of memory for all seven.
    code.values = <int32_t*>calloc(code.bound, 4 * sizeof(int32_t) + 3)
    if code.values == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a shader: the host is out of memory")
    code.ends = code.values + code.bound
    code.taken = <uint32_t*>(code.ends + code.bound)
    code.spec_ids = code.taken + code.bound
    code.is_known = <uint8_t*>(code.spec_ids + code.bound)
    code.is_reached = code.is_known + code.bound
    code.is_gone = code.is_reached + code.bound
    status = prune(&code, pruned, pruned_bytes, error)
    free(code.values)
    return status


cdef int prune(Code* code, uint32_t** pruned, size_t* pruned_bytes, Error* error) noexcept nogil:
    cdef int first = evaluate(code)
    find_ends(code, first)
    reach(code, first)
    if not mark_needed(code, first):
        return VKRT_OK
    mark_gone(code, first)
    # What is written is never more than there was, but of a module that is not valid.
    pruned[0] = <uint32_t*>calloc(2 * <size_t>code.size, sizeof(uint32_t))
    if pruned[0] == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"a shader: the host is out of memory")
    pruned_bytes[0] = 4 * <size_t>write(code, pruned[0])
    return VKRT_OK


cdef int least_words(int op) noexcept nogil:
    """Words that an instruction has at least, of those whose operands are looked at."""
    if op in (OP_LABEL, OP_BRANCH, OP_SELECTION_MERGE, OP_NAME):
        return 2
    if op in (OP_SPEC_CONSTANT_OP, OP_BRANCH_CONDITIONAL):
        return 4
    if (op in (OP_DECORATE, OP_CONSTANT_TRUE, OP_CONSTANT_FALSE, OP_CONSTANT, OP_SPEC_CONSTANT,
               OP_SWITCH, OP_LOOP_MERGE, OP_PHI)):
        return 3
    return 1


cdef int check(const Code* code, Error* error) noexcept nogil:
    """That the instructions fill the module, and have their operands; the rest relies on it."""
    cdef int at = HEADER_WORDS
    while at < code.size:
        if length(code.words + at) < least_words(opcode(code.words + at)):
            break
        at += length(code.words + at)
    if at != code.size:
        return fail(error, VKRT_ERROR_FORMAT, b"not a SPIR-V module: its instructions do not end "
                    b"where it does")
    return VKRT_OK


cdef void find_ends(Code* code, int at) noexcept nogil:
    """Finds the terminator of every block, and which way it goes if that is known."""
    cdef const uint32_t* word
    cdef uint32_t label = 0, condition
    cdef int op, i, before = 0
    while at < code.size:
        word = code.words + at
        op = opcode(word)
        if op == OP_LABEL:
            label = valid(code, word[1])
        elif OP_BRANCH <= op <= OP_UNREACHABLE:
            code.ends[label] = at
            condition = valid(code, word[1]) if length(word) > 1 else 0
            if before == OP_LOOP_MERGE or not code.is_known[condition]:
                pass  # a loop is left as it is
            elif op == OP_BRANCH_CONDITIONAL:
                code.taken[label] = valid(code, word[2 if code.values[condition] else 3])
            elif op == OP_SWITCH:
                code.taken[label] = valid(code, word[2])
                for i in range(3, length(word) - 1, 2):
                    if <int32_t>word[i] == code.values[condition]:
                        code.taken[label] = valid(code, word[i + 1])
        before = op
        at += length(word)


cdef uint32_t label_of(const Code* code, const uint32_t* word, uint32_t before) noexcept nogil:
    """The label of the block of an instruction, or 0; `before`: that of the one before it."""
    if opcode(word) == OP_LABEL:
        return valid(code, word[1])
    return 0 if opcode(word) == OP_FUNCTION_END else before


cdef uint32_t successor(Code* code, uint32_t label, int index) noexcept nogil:
    """The label of a block to which a block goes on; 0 where it has no more than `index`."""
    cdef const uint32_t* word = code.words + code.ends[label]
    cdef int op = opcode(word)
    if code.taken[label]:
        return code.taken[label] if index == 0 else 0
    if op == OP_BRANCH:
        return valid(code, word[1]) if index == 0 else 0
    if op == OP_BRANCH_CONDITIONAL:
        return valid(code, word[2 + index]) if index < 2 else 0
    if op == OP_SWITCH:
        return valid(code, word[2 + 2 * index]) if 2 + 2 * index < length(word) else 0
    return 0


cdef bint goes_to(Code* code, uint32_t label, uint32_t target) noexcept nogil:
    cdef int index = 0
    cdef uint32_t found
    if code.is_reached[label] != REACHED:
        return False
    while True:
        found = successor(code, label, index)
        if found == 0 or found == target:
            return found == target
        index += 1


cdef void reach(Code* code, int functions) noexcept nogil:
    """Marks the blocks that something reaches, again until no more are found: ways back lead to
    blocks before."""
    cdef const uint32_t* word
    cdef bint found = True, begins
    cdef uint32_t label, other
    cdef int at, index, op
    while found:
        found, begins, label = False, False, 0
        at = functions
        while at < code.size:
            word = code.words + at
            op = opcode(word)
            if op == OP_FUNCTION:
                begins = True
            elif op == OP_LABEL:
                label = valid(code, word[1])
                if begins and not code.is_reached[label]:
                    code.is_reached[label] = found = True
                begins = False
            elif label and code.is_reached[label]:
                index = 0
                while OP_BRANCH <= op <= OP_UNREACHABLE:
                    other = successor(code, label, index)
                    if other == 0:
                        break
                    if not code.is_reached[other]:
                        code.is_reached[other] = found = True
                    index += 1
            at += length(word)


cdef bint has_result(int op) noexcept nogil:
    """Whether an instruction of a function has a result, after its type."""
    return not (op == OP_STORE or op == OP_COPY_MEMORY or op == OP_IMAGE_WRITE
                or op == OP_CONTROL_BARRIER or op == OP_MEMORY_BARRIER or op == OP_ATOMIC_STORE
                or OP_LOOP_MERGE <= op <= OP_UNREACHABLE)


cdef void mark_gone(Code* code, int at) noexcept nogil:
    cdef const uint32_t* word
    cdef uint32_t label = 0
    while at < code.size:
        word = code.words + at
        label = label_of(code, word, label)
        if label and code.is_reached[label] != REACHED and has_result(opcode(word)) \
                and length(word) > 2:
            code.is_gone[valid(code, word[2])] = 1
        at += length(word)


cdef bint mark_needed(Code* code, int at) noexcept nogil:
    """Marks the ends of loops and selections that have to be there; False where the way back of a
    loop would have to."""
    cdef const uint32_t* word
    cdef uint32_t label = 0
    cdef int op
    while at < code.size:
        word = code.words + at
        op = opcode(word)
        label = label_of(code, word, label)
        if label and code.is_reached[label] == REACHED:
            if op == OP_LOOP_MERGE and not code.is_reached[valid(code, word[2])]:
                return False
            if (op == OP_LOOP_MERGE or (op == OP_SELECTION_MERGE and stays(code, label))) \
                    and not code.is_reached[valid(code, word[1])]:
                code.is_reached[valid(code, word[1])] = NEEDED
        at += length(word)
    return True


cdef int write(Code* code, uint32_t* result) noexcept nogil:
    """Writes what is left; returns its number of words, never more than there were."""
    cdef const uint32_t* word
    cdef uint32_t label = 0
    cdef int at = HEADER_WORDS, size = HEADER_WORDS, op
    memcpy(result, code.words, HEADER_WORDS * sizeof(uint32_t))
    while at < code.size:
        word = code.words + at
        op = opcode(word)
        at += length(word)
        label = label_of(code, word, label)
        if label and code.is_reached[label] != REACHED:
            if op == OP_LABEL and code.is_reached[label] == NEEDED:
                size += put(result + size, OP_LABEL, 2, label, 0)
                size += put(result + size, OP_UNREACHABLE, 1, 0, 0)
        elif (op == OP_DECORATE or op == OP_NAME) and code.is_gone[valid(code, word[1])]:
            pass
        elif op == OP_SELECTION_MERGE and not stays(code, label):
            pass
        elif op == OP_PHI:
            size += put_phi(code, label, word, result + size)
        elif label and OP_BRANCH <= op <= OP_UNREACHABLE and code.taken[label]:
            if op == OP_SWITCH:
                # What leaves a case early goes to the end of its selection: that stays, with it.
                size += put(result + size, OP_SWITCH, 3, word[1], code.taken[label])
            else:
                size += put(result + size, OP_BRANCH, 2, code.taken[label], 0)
        else:
            memcpy(result + size, word, length(word) * sizeof(uint32_t))
            size += length(word)
    return size


cdef int put(uint32_t* result, uint32_t op, int size, uint32_t first,
             uint32_t second) noexcept nogil:
    """Writes an instruction of up to two operands; returns its number of words."""
    result[0] = size << 16 | op
    if size > 1:
        result[1] = first
    if size > 2:
        result[2] = second
    return size


cdef int put_phi(Code* code, uint32_t label, const uint32_t* word,
                 uint32_t* result) noexcept nogil:
    """Writes a phi with the ways that are left; returns its number of words."""
    cdef int i, size = 3
    for i in range(3, length(word) - 1, 2):
        if goes_to(code, valid(code, word[i + 1]), label):
            result[size] = word[i]
            result[size + 1] = word[i + 1]
            size += 2
    result[1] = word[1]
    result[2] = word[2]
    # All phis of a block have the same ways, so either all of them become copies or none.
    if size == 5:
        size = 4
        result[0] = 4 << 16 | OP_COPY_OBJECT
    else:
        result[0] = size << 16 | OP_PHI
    return size


cdef bint stays(Code* code, uint32_t label) noexcept nogil:
    """Whether the selection at the end of a block stays one."""
    return not code.taken[label] or opcode(code.words + code.ends[label]) == OP_SWITCH
