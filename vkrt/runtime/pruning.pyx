# cython: language_level=3
"""Shader modules without the code that their specialization constants never reach.

One module serves every kind and every size that may be compiled in, so most of its blocks are dead
in any one pipeline: nine tenths of copy.comp are. Drivers leave dead blocks out too, but first they
translate all of them, and lavapipe keeps the memory in which it does that as long as the pipeline
lives. Here they are left out before: the 12 pipelines of resnet50 take 3 MB less.

What is known are constants, and the operations on them that `fold` has. A selection by a known
condition becomes a branch; blocks that nothing reaches any more go, with their decorations; a phi
with one way left is a copy. The specialization constants stay where they are, so a pipeline is made
of the pruned module with the same values as of the whole one, and of no others.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from vkrt.runtime.opcodes cimport *

# What `is_reached` says of a block: it is; or it is not, and has to be there as the end of a loop
# or a selection.
cdef enum:
    REACHED = 1
    NEEDED = 2


cdef struct Code:
    const uint32_t* words
    int size
    uint32_t bound
    # By id: whether it is a known constant, and which; of labels whether anything reaches them,
    # where the terminator of their block is, and the label to which it goes if its condition is
    # known (or else 0); whether it is the result of an instruction that goes.
    uint8_t* is_known
    int32_t* values
    uint8_t* is_reached
    int32_t* ends
    uint32_t* taken
    uint8_t* is_gone


def pruned(module, constants):
    """A module without what is never reached with these constants.

    Args:
        module: SPIR-V words, as a buffer of bytes; valid, with one definition of each id.
        constants: (id, 32-bit int) of the specialization constants that have another value than
            their default.

    Raises:
        ValueError: not a SPIR-V module.
    """
    cdef bytes whole = bytes(module)
    cdef Code code
    cdef int first, size = 0
    cdef bint is_whole
    code.words = <const uint32_t*><const char*>whole
    code.size = len(whole) // 4
    if len(whole) % 4 or code.size < HEADER_WORDS or code.words[0] != MAGIC:
        raise ValueError("not a SPIR-V module")
    code.bound = code.words[3]
    check(&code)
    # One block of memory for all six.
    cdef char* memory = <char*>calloc(code.bound, 3 * sizeof(int32_t) + 3)
    cdef uint32_t* result = <uint32_t*>calloc(code.size, sizeof(uint32_t))
    try:
        if memory == NULL or result == NULL:
            raise MemoryError
        code.values = <int32_t*>memory
        code.ends = code.values + code.bound
        code.taken = <uint32_t*>(code.ends + code.bound)
        code.is_known = <uint8_t*>(code.taken + code.bound)
        code.is_reached = code.is_known + code.bound
        code.is_gone = code.is_reached + code.bound
        first = evaluate(&code, dict(constants))
        with nogil:
            find_ends(&code, first)
            reach(&code, first)
            is_whole = not mark_needed(&code, first)
            if not is_whole:
                mark_gone(&code, first)
                size = write(&code, result)
        if is_whole:
            return whole
        return (<char*>result)[:4 * size]
    finally:
        free(memory)
        free(result)


cdef inline int length(const uint32_t* at) noexcept nogil:
    return at[0] >> 16


cdef inline int opcode(const uint32_t* at) noexcept nogil:
    return at[0] & 0xFFFF


cdef int check(Code* code) except -1:
    """That the instructions fill the module; the rest relies on it."""
    cdef int at = HEADER_WORDS
    while at < code.size:
        if length(code.words + at) == 0:
            break
        at += length(code.words + at)
    if at != code.size:
        raise ValueError("not a SPIR-V module: its instructions do not end where it does")
    return 0


cdef int evaluate(Code* code, dict constants) except -1:
    """Finds what is known; returns where the functions begin."""
    cdef int at = HEADER_WORDS, functions = -1
    cdef const uint32_t* word
    specs = {}
    while at < code.size:
        word = code.words + at
        op = opcode(word)
        if op == OP_DECORATE and word[2] == SPEC_ID:
            specs[word[1]] = word[3]
        elif op == OP_CONSTANT_TRUE or op == OP_CONSTANT_FALSE:
            learn(code, word[2], op == OP_CONSTANT_TRUE)
        elif op == OP_CONSTANT and length(word) == 4:
            learn(code, word[2], <int32_t>word[3])
        elif op == OP_SPEC_CONSTANT and length(word) == 4:
            learn(code, word[2], <int32_t><uint32_t>(
                constants.get(specs.get(word[2]), word[3]) & 0xFFFFFFFF))
        elif op == OP_SPEC_CONSTANT_OP:
            fold(code, word[2], word[3], word + 4, length(word) - 4)
        elif op == OP_FUNCTION and functions < 0:
            functions = at
        elif functions >= 0 and OP_LOGICAL_EQUAL <= op <= OP_S_LESS_EQUAL:
            fold(code, word[2], op, word + 3, length(word) - 3)
        at += length(word)
    return functions if functions >= 0 else code.size


cdef void learn(Code* code, uint32_t number, int32_t value) noexcept nogil:
    code.is_known[number] = 1
    code.values[number] = value


cdef void fold(Code* code, uint32_t number, int op, const uint32_t* operands,
               int count) noexcept nogil:
    """Learns the result of an operation, if it is one of those below, of what is known."""
    cdef bint knows_a = count > 0 and code.is_known[operands[0]]
    cdef bint knows_b = count > 1 and code.is_known[operands[1]]
    cdef int32_t a = code.values[operands[0]] if knows_a else 0
    cdef int32_t b = code.values[operands[1]] if knows_b else 0
    if op == OP_LOGICAL_AND and ((knows_a and not a) or (knows_b and not b)):
        learn(code, number, 0)
    elif op == OP_LOGICAL_OR and ((knows_a and a) or (knows_b and b)):
        learn(code, number, 1)
    elif op == OP_LOGICAL_NOT and knows_a:
        learn(code, number, not a)
    elif op == OP_SELECT and knows_a and count == 3:
        if code.is_known[operands[1 if a else 2]]:
            learn(code, number, code.values[operands[1 if a else 2]])
    elif knows_a and knows_b:
        if op == OP_LOGICAL_AND:
            learn(code, number, 1)
        elif op == OP_LOGICAL_OR:
            learn(code, number, 0)
        elif op == OP_I_EQUAL or op == OP_LOGICAL_EQUAL:
            learn(code, number, a == b)
        elif op == OP_I_NOT_EQUAL or op == OP_LOGICAL_NOT_EQUAL:
            learn(code, number, a != b)
        elif op == OP_S_GREATER:
            learn(code, number, a > b)
        elif op == OP_S_GREATER_EQUAL:
            learn(code, number, a >= b)
        elif op == OP_S_LESS:
            learn(code, number, a < b)
        elif op == OP_S_LESS_EQUAL:
            learn(code, number, a <= b)
        elif op == OP_BITWISE_AND:
            learn(code, number, a & b)
        elif op == OP_I_ADD:
            learn(code, number, <int32_t>(<uint32_t>a + <uint32_t>b))
        elif op == OP_I_SUB:
            learn(code, number, <int32_t>(<uint32_t>a - <uint32_t>b))
        elif op == OP_I_MUL:
            learn(code, number, <int32_t>(<uint32_t>a * <uint32_t>b))


cdef void find_ends(Code* code, int at) noexcept nogil:
    """Finds the terminator of every block, and which way it goes if that is known."""
    cdef const uint32_t* word
    cdef uint32_t label = 0
    cdef int op, i, before = 0
    while at < code.size:
        word = code.words + at
        op = opcode(word)
        if op == OP_LABEL:
            label = word[1]
        elif OP_BRANCH <= op <= OP_UNREACHABLE:
            code.ends[label] = at
            # A loop is left as it is.
            if before != OP_LOOP_MERGE and op == OP_BRANCH_CONDITIONAL and code.is_known[word[1]]:
                code.taken[label] = word[2 if code.values[word[1]] else 3]
            elif before != OP_LOOP_MERGE and op == OP_SWITCH and code.is_known[word[1]]:
                code.taken[label] = word[2]
                for i in range(3, length(word) - 1, 2):
                    if <int32_t>word[i] == code.values[word[1]]:
                        code.taken[label] = word[i + 1]
        before = op
        at += length(word)


cdef uint32_t successor(Code* code, uint32_t label, int index) noexcept nogil:
    """The label of a block to which a block goes on; 0 where it has no more than `index`."""
    cdef const uint32_t* word = code.words + code.ends[label]
    cdef int op = opcode(word)
    if code.taken[label]:
        return code.taken[label] if index == 0 else 0
    if op == OP_BRANCH:
        return word[1] if index == 0 else 0
    if op == OP_BRANCH_CONDITIONAL:
        return word[2 + index] if index < 2 else 0
    if op == OP_SWITCH:
        return word[2 + 2 * index] if 2 + 2 * index < length(word) else 0
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
                label = word[1]
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
    """Marks the results in blocks that nothing reaches."""
    cdef const uint32_t* word
    cdef uint32_t label = 0
    while at < code.size:
        word = code.words + at
        if opcode(word) == OP_LABEL:
            label = word[1]
        elif opcode(word) == OP_FUNCTION_END:
            label = 0
        elif label and code.is_reached[label] != REACHED and has_result(opcode(word)):
            code.is_gone[word[2]] = 1
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
        if op == OP_LABEL:
            label = word[1]
        elif op == OP_FUNCTION_END:
            label = 0
        elif label and code.is_reached[label] == REACHED:
            if op == OP_LOOP_MERGE and not code.is_reached[word[2]]:
                return False
            if (op == OP_LOOP_MERGE or (op == OP_SELECTION_MERGE and stays(code, label))) \
                    and not code.is_reached[word[1]]:
                code.is_reached[word[1]] = NEEDED
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
        if op == OP_LABEL:
            label = word[1]
        elif op == OP_FUNCTION_END:
            label = 0
        if label and code.is_reached[label] != REACHED:
            if op == OP_LABEL and code.is_reached[label] == NEEDED:
                size += put(result + size, OP_LABEL, 2, label, 0)
                size += put(result + size, OP_UNREACHABLE, 1, 0, 0)
        elif (op == OP_DECORATE or op == OP_NAME) and code.is_gone[word[1]]:
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
    for i in range(3, length(word), 2):
        if goes_to(code, word[i + 1], label):
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
