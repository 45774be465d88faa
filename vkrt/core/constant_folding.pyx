from vkrt.core.opcodes cimport *


cdef uint32_t constant_of(const Code* code, uint32_t number, uint32_t default) noexcept nogil:
    """The value of the specialization constant with an id."""
    cdef size_t i
    for i in range(code.constant_count):
        if code.spec_ids[number] == code.constants[i].id + 1:
            return code.constants[i].value
    return default


cdef int evaluate(Code* code) noexcept nogil:
    cdef int at = HEADER_WORDS
    cdef int functions = -1
    cdef const uint32_t* word
    cdef int op, size
    cdef uint32_t number
    while at < code.size:
        word = code.words + at
        op, size = opcode(word), length(word)
        number = valid(code, word[2]) if size > 2 else 0
        if op == OP_DECORATE and word[2] == SPEC_ID and size > 3:
            code.spec_ids[valid(code, word[1])] = word[3] + 1
        elif op == OP_CONSTANT_TRUE or op == OP_CONSTANT_FALSE:
            learn(code, number, op == OP_CONSTANT_TRUE)
        elif op == OP_CONSTANT and size == 4:
            learn(code, number, <int32_t>word[3])
        elif op == OP_SPEC_CONSTANT and size == 4:
            learn(code, number, <int32_t>constant_of(code, number, word[3]))
        elif op == OP_SPEC_CONSTANT_OP:
            fold(code, number, word[3], word + 4, size - 4)
        elif op == OP_FUNCTION and functions < 0:
            functions = at
        elif functions >= 0 and OP_LOGICAL_EQUAL <= op <= OP_S_LESS_EQUAL and size > 2:
            fold(code, number, op, word + 3, size - 3)
        at += size
    return functions if functions >= 0 else code.size


cdef void learn(Code* code, uint32_t number, int32_t value) noexcept nogil:
    code.is_known[number] = 1
    code.values[number] = value


cdef void fold(Code* code, uint32_t number, int op, const uint32_t* operands,
               int count) noexcept nogil:
    """Learns the result of an operation, if it is one of those below, of what is known."""
    cdef uint32_t first = valid(code, operands[0]) if count > 0 else 0
    cdef uint32_t second = valid(code, operands[1]) if count > 1 else 0
    cdef uint32_t chosen
    cdef bint knows_a = count > 0 and code.is_known[first]
    cdef bint knows_b = count > 1 and code.is_known[second]
    cdef int32_t a = code.values[first] if knows_a else 0
    cdef int32_t b = code.values[second] if knows_b else 0
    if op == OP_LOGICAL_AND and ((knows_a and not a) or (knows_b and not b)):
        learn(code, number, 0)
    elif op == OP_LOGICAL_OR and ((knows_a and a) or (knows_b and b)):
        learn(code, number, 1)
    elif op == OP_LOGICAL_NOT and knows_a:
        learn(code, number, not a)
    elif op == OP_SELECT and knows_a and count == 3:
        chosen = valid(code, operands[1 if a else 2])
        if code.is_known[chosen]:
            learn(code, number, code.values[chosen])
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
