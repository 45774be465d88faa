# cython: cdivision=True, boundscheck=False, wraparound=False
"""Strided copies: how a weight's bytes come out of a constant's, checked before a byte is moved.

The parameters are those of the copy shaders (shaders/common/copy.glsl, `vkrt.ops.strided_copy`): a
strided view of the source's elements in the order of the target's, whose innermost dimension is
packed in texels of 4 elements with zeros behind its end. They may come from a file, so they may be
any numbers: what is accepted stays within the bytes that it says it takes.
"""

from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memset

from vkrt.core.checked cimport PTRDIFF_MAX, add_overflows, multiply_overflows
from vkrt.core.error cimport VKRT_ERROR_INPUT, VKRT_OK, Error, fail

# ids of the copy shaders' parameters
cdef enum:
    DIMS = 0
    PACKED = 5
    FIRST = 6
    COUNT = 7
    GAP = 9
    OFFSET = 10
    BASE = 11
    DIMENSIONS = 15  # the size and the stride of each, innermost first

cdef struct Dimension:
    int64_t size
    int64_t stride

cdef struct View:
    int count
    Dimension dims[COPY_DIMS]


cdef int make_strided_copy(const int64_t* params, size_t count, int64_t itemsize, int64_t rows,
                           StridedCopy* copy, Error* error) noexcept nogil:
    """Fills `copy` in, or refuses parameters that are no such copy.

    `count` says how many parameters there are, `itemsize` how many bytes an element has on both
    sides, `rows` how many equal parts, one after the other on both sides, are packed one by one.
    """
    cdef View view
    cdef int64_t texels, elements = 0, target, span
    memset(copy, 0, sizeof(copy[0]))
    if read_params(params, count, itemsize, rows, &view, error):
        return error.status
    texels = params[PACKED] // 4 + (params[PACKED] % 4 != 0)
    if multiply_overflows(params[COUNT], 4 * itemsize, &target) or target > PTRDIFF_MAX:
        return fail(error, VKRT_ERROR_INPUT, "COUNT: %lld texels have more bytes than memory",
                    <long long>params[COUNT])
    # As many texels as there are have room for these elements: nothing overflows from here on.
    if texels:
        elements = params[COUNT] // texels * params[PACKED]
    if (elements != elements_of(&view) or (params[COUNT] % texels if texels else params[COUNT])
            or elements and elements // params[PACKED] % rows):
        return fail(error, VKRT_ERROR_INPUT,
                    "COUNT: %lld texels of rows of %lld elements are not %lld rows of a strided "
                    "copy of as many elements as its %d sizes say",
                    <long long>params[COUNT], <long long>params[PACKED], <long long>rows,
                    view.count)
    copy.itemsize = <size_t>itemsize
    copy.rows = copy.parts = <size_t>rows
    copy.across = -1
    if not elements:
        return VKRT_OK
    # Wherever a loop over all of this stands, before and after its steps, is within the span.
    if span_overflows(&view, params[BASE], &span) or span > PTRDIFF_MAX // itemsize:
        return fail(error, VKRT_ERROR_INPUT,
                    "BASE, strides: a strided copy of %d dimensions from %lld reaches further than "
                    "memory", view.count, <long long>params[BASE])
    copy.packed = <size_t>params[PACKED]
    copy.line = <size_t>texels * 4
    copy.base = <ptrdiff_t>params[BASE]
    copy.part_source = <size_t>(elements // rows)
    copy.part_target = <size_t>(params[COUNT] * 4 // rows)
    copy.row_bytes = copy.part_source * copy.itemsize
    copy.target_bytes = <size_t>target
    return plan_loops(copy, &view, error)


cdef int read_params(const int64_t* params, size_t count, int64_t itemsize, int64_t rows,
                     View* view, Error* error) noexcept nogil:
    """Looks at each parameter on its own, and puts the dimensions into `view`."""
    cdef int k
    if itemsize != 1 and itemsize != 2 and itemsize != 4:
        return fail(error, VKRT_ERROR_INPUT, "elements of %lld bytes; expected 1, 2 or 4",
                    <long long>itemsize)
    if rows < 1:
        return fail(error, VKRT_ERROR_INPUT, "%lld rows; expected at least 1", <long long>rows)
    if count <= DIMENSIONS or not 0 < params[DIMS] <= COPY_DIMS \
            or count < <size_t>(DIMENSIONS + 2 * params[DIMS]):
        return fail(error, VKRT_ERROR_INPUT,
                    "DIMS: %zu numbers are not parameters of a copy of 1 to %d dimensions", count,
                    <int>COPY_DIMS)
    if params[PACKED] < 0 or params[COUNT] < 0:
        return fail(error, VKRT_ERROR_INPUT,
                    "PACKED %lld, COUNT %lld: negative numbers are not parameters of a copy",
                    <long long>params[PACKED], <long long>params[COUNT])
    if params[FIRST] or params[GAP] or params[OFFSET]:
        return fail(error, VKRT_ERROR_INPUT,
                    "FIRST, GAP, OFFSET: a copy into a part of a tensor cannot be packed on the "
                    "host")
    view.count = <int>params[DIMS]
    for k in range(view.count):
        view.dims[k].size = params[DIMENSIONS + 2 * k]
        view.dims[k].stride = params[DIMENSIONS + 2 * k + 1]
        if view.dims[k].size < 0:
            return fail(error, VKRT_ERROR_INPUT,
                        "dimension %d: a negative size, %lld, is not a parameter of a copy", k,
                        <long long>view.dims[k].size)
    return VKRT_OK


cdef int64_t elements_of(const View* view) noexcept nogil:
    """The product of the sizes; -1 where it is no number."""
    cdef int64_t product = 1
    cdef bint overflows = False
    cdef int k
    for k in range(view.count):
        if view.dims[k].size == 0:
            return 0
        overflows = overflows or multiply_overflows(product, view.dims[k].size, &product)
    return -1 if overflows else product


cdef bint span_overflows(const View* view, int64_t base, int64_t* span) noexcept nogil:
    """How far all of this can lead away from the source's first element, in either direction."""
    cdef int64_t step
    cdef int k
    # Minus a number always fits into 64 bits where the number is not the least of all.
    if base == -INT64_MAX - 1:
        return True
    span[0] = base if base >= 0 else -base
    for k in range(view.count):
        if view.dims[k].size == 1:
            continue
        if multiply_overflows(view.dims[k].size, view.dims[k].stride, &step) \
                or step == -INT64_MAX - 1 \
                or add_overflows(span[0], step if step >= 0 else -step, span):
            return True
    return False


cdef int plan_loops(StridedCopy* copy, View* view, Error* error) noexcept nogil:
    """Divides the view into the packed row, the dimensions of a row of the weight, and its rows."""
    cdef View inner, outer, rest, beyond
    cdef int64_t lowest = copy.base, highest = copy.base
    cdef size_t step
    cdef int first = 0, k
    if (split(view, copy.packed, &inner, &rest, error)
            or split(&rest, copy.part_source // copy.packed, &outer, &beyond, error)):
        return error.status
    if inner.count > 1 or beyond.count > 1 or beyond.count and (
            beyond.dims[0].size != <int64_t>copy.rows
            or beyond.dims[0].stride != <int64_t>copy.part_source):
        return fail(error, VKRT_ERROR_INPUT,
                    "%zu rows of a strided copy of %d dimensions cannot be packed one by one",
                    copy.rows, view.count)
    copy.stride = <ptrdiff_t>inner.dims[0].stride if inner.count else 1
    if copy.packed % 4 == 0 and copy.stride == 1:
        # Lines without padding that follow each other on both sides are one line.
        while first < outer.count and outer.dims[first].stride == <int64_t>copy.packed:
            copy.packed *= <size_t>outer.dims[first].size
            first += 1
        copy.line = copy.packed
        copy.whole = first == outer.count and copy.packed == copy.part_source
    step = copy.line
    copy.dims = outer.count - first
    for k in range(copy.dims):
        copy.sizes[k] = <size_t>outer.dims[first + k].size
        copy.strides[k] = <ptrdiff_t>outer.dims[first + k].stride
        copy.steps[k] = step
        step *= copy.sizes[k]
        if copy.across < 0 and copy.strides[k] == 1 and copy.stride != 1:
            copy.across = k
        reach(outer.dims[first + k].size, copy.strides[k], &lowest, &highest)
    # Columns that follow each other in the source are parts too.
    if copy.rows == 1 and not copy.whole and lowest >= 0 and highest < copy.stride:
        copy.columns = True
        copy.parts, copy.part_source, copy.part_target = copy.packed, <size_t>copy.stride, 1
    else:
        reach(<int64_t>copy.packed, copy.stride, &lowest, &highest)
    if lowest < 0:
        return fail(error, VKRT_ERROR_INPUT,
                    "BASE: a strided copy of %d dimensions from %lld starts before the constant",
                    view.count, <long long>copy.base)
    copy.part_extent = <size_t>highest + 1
    copy.source_bytes = parts_bytes(copy, copy.parts)
    return VKRT_OK


cdef void reach(int64_t size, int64_t stride, int64_t* lowest, int64_t* highest) noexcept nogil:
    """Extends the range of elements that are read by those of one more dimension."""
    if stride < 0:
        lowest[0] += (size - 1) * stride
    else:
        highest[0] += (size - 1) * stride


cdef int split(const View* view, size_t elements, View* inner, View* outer,
               Error* error) noexcept nogil:
    """Splits the dimensions of a view, innermost first, after some elements; drops sizes of 1."""
    cdef int64_t missing = <int64_t>elements, taken
    cdef int k
    inner.count = outer.count = 0
    for k in range(view.count):
        taken = common_divisor(view.dims[k].size, missing)
        if taken != view.dims[k].size and taken != missing:
            return fail(error, VKRT_ERROR_INPUT,
                        "dimension %d: a strided copy has no border after %zu elements", k,
                        elements)
        missing //= taken
        if taken > 1:
            append(inner, taken, view.dims[k].stride)
        if view.dims[k].size > taken:
            append(outer, view.dims[k].size // taken, view.dims[k].stride * taken)
    if missing != 1:
        return fail(error, VKRT_ERROR_INPUT,
                    "a strided copy of %d dimensions is over before its border after %zu elements",
                    view.count, elements)
    return VKRT_OK


cdef void append(View* view, int64_t size, int64_t stride) noexcept nogil:
    view.dims[view.count].size = size
    view.dims[view.count].stride = stride
    view.count += 1


cdef int64_t common_divisor(int64_t a, int64_t b) noexcept nogil:
    """The largest number that divides both, which are positive."""
    while b:
        a, b = b, a % b
    return a


cdef size_t parts_bytes(const StridedCopy* copy, size_t count) noexcept nogil:
    """Bytes of the source that some parts in a row take."""
    return (copy.part_extent + (count - 1) * copy.part_source) * copy.itemsize if count else 0


cdef size_t rows_bytes(const StridedCopy* copy, size_t rows) noexcept nogil:
    """Bytes of the source that some rows in a row take."""
    return copy.source_bytes - (copy.rows - rows) * copy.row_bytes if rows else 0
