"""The records of files as structs: rows of tables.

Written by `tools/records.py --write`, from the classes of vkrt/executable/program.py.
"""

from libc.stdint cimport int64_t

cdef enum:
    LAYOUT = 0xd11f9ada
    TABLES = 42
    TYPES = 97

cdef enum:
    TABLE_TEXTS, TABLE_NOTHING, TABLE_FLAG, TABLE_INTEGER, TABLE_NUMBER, TABLE_TEXT, TABLE_ANY_ROWS
    TABLE_READ_ARGUMENT, TABLE_TENSOR, TABLE_ANY, TABLE_CONSTANT_METHOD, TABLE_STORAGE, TABLE_PLACE
    TABLE_BLOCK, TABLE_INTEGERS_2, TABLE_KERNEL, TABLE_BINDING, TABLE_DISPATCH_COMMAND
    TABLE_COPY_COMMAND, TABLE_BARRIER_COMMAND, TABLE_COMMAND, TABLE_HOST_ARRAY
    TABLE_SUBMISSION_RECORD, TABLE_MAYBE_HOST_ARRAY, TABLE_WEIGHT_READ, TABLE_STAGED_READ
    TABLE_PREPACK_BATCH, TABLE_UPLOAD_PIECE, TABLE_STREAMED_WEIGHT, TABLE_RELOAD
    TABLE_STATE_TENSOR, TABLE_WEIGHT_RECORD, TABLE_LIMIT, TABLE_INDEX_LIMIT, TABLE_INTEGER_ROWS
    TABLE_COMPILED_SHAPE, TABLE_SHARED_USE, TABLE_COMPILED_METHOD, TABLE_COMPILED_TARGET
    TABLE_MODULE_BINDING, TABLE_MODULE, TABLE_COMPILED

cdef enum:
    ANY_NOTHING, ANY_FLAG, ANY_INTEGER, ANY_NUMBER, ANY_TEXT, ANY_ANY_ROWS, ANY_READ_ARGUMENT
    ANY_TENSOR

cdef enum:
    DTYPE_BOOL, DTYPE_UINT8, DTYPE_INT8, DTYPE_INT16, DTYPE_UINT16, DTYPE_INT32, DTYPE_UINT32
    DTYPE_INT64, DTYPE_UINT64, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64
    DTYPE_QUINT4X2, DTYPE_QUINT2X4, DTYPE_BITS1X8, DTYPE_BITS2X4, DTYPE_BITS4X2, DTYPE_COMPLEX32
    DTYPE_COMPLEX64, DTYPE_COMPLEX128, DTYPE_QINT8, DTYPE_QUINT8, DTYPE_QINT32, DTYPE_BITS8
    DTYPE_BITS16, DTYPE_FLOAT8_E5M2, DTYPE_FLOAT8_E4M3FN, DTYPE_FLOAT8_E5M2FNUZ
    DTYPE_FLOAT8_E4M3FNUZ

cdef enum:
    ROLE_WEIGHT, ROLE_ACTIVATION, ROLE_INPUT, ROLE_STATE, ROLE_SPILL

cdef enum:
    BLOCK_KIND_WEIGHT, BLOCK_KIND_POOL, BLOCK_KIND_STATE, BLOCK_KIND_ACTIVATION, BLOCK_KIND_HOST
    BLOCK_KIND_SPILL

cdef enum:
    COMMAND_DISPATCH, COMMAND_COPY, COMMAND_BARRIER

# Bytes of the texts
cdef struct Text:
    int64_t first, count

# Rows of a table that follow one another
cdef struct Rows:
    int64_t first, count

# Which member of a union, and its row
cdef struct Member:
    int64_t which, row

cdef struct CompiledRow:
    Text vkrt, program
    Rows constants, targets, modules

cdef struct ConstantMethodRow:
    Text name
    Rows values

cdef struct ReadArgumentRow:
    int64_t read

cdef struct MaybeTextRow:
    int64_t is_there
    Text value

cdef struct MaybeNumberRow:
    int64_t is_there
    double value

cdef struct ConstantRow:
    int64_t offset, nbytes, dtype
    MaybeTextRow key
    int64_t source
    MaybeNumberRow number
    int64_t zeros

cdef struct MaybeConstantRow:
    int64_t is_there
    ConstantRow value

cdef struct MaybeIntegerRowsRow:
    int64_t is_there
    Rows value

cdef struct TensorRow:
    Rows sizes
    int64_t dtype, host_dtype
    MaybeConstantRow constant
    Text name
    Rows dynamic_dims
    MaybeIntegerRowsRow bounds

cdef struct CompiledTargetRow:
    Text device
    Rows methods, shared

cdef struct ExecutionPlanRow:
    Rows storages, blocks, kernels, submissions, inputs, outputs
    int64_t skips_branches

cdef struct PrepackPlanRow:
    Rows kernels, batches
    int64_t staging_bytes

cdef struct ReloadPlanRow:
    int64_t prefetches
    Rows needed, reloads

cdef struct MaybeReloadPlanRow:
    int64_t is_there
    ReloadPlanRow value

cdef struct WeightPlanRow:
    Rows weights, contents, blocks
    int64_t is_eager
    Rows mapped, written
    PrepackPlanRow prepack
    Rows streamed
    int64_t upload_bytes
    MaybeReloadPlanRow reloads
    int64_t keeps_state

cdef struct StatePlanRow:
    Rows tensors, blocks

cdef struct MemoryFiguresRow:
    Text order
    int64_t weight_bytes, largest_weight, activation_bytes, host_bytes, staging_bytes, peak_bytes
    int64_t lower_bound, pool_bytes, upload_bytes, spill_bytes, state_bytes, row_bytes
    Text packing

cdef struct ExecutableRow:
    ExecutionPlanRow execution
    WeightPlanRow weights
    StatePlanRow states
    MemoryFiguresRow figures
    Rows placements, notes
    Text storage
    int64_t offset_alignment, granularity, shared_bytes, loops

cdef struct MethodPlanRow:
    Rows methods
    Text method
    Rows inputs, outputs, input_names, output_names
    int64_t file_arena
    ExecutableRow executable
    Rows limits, index_limits

cdef struct CompiledMethodRow:
    MethodPlanRow largest
    Rows others, shared

cdef struct Integers3Row:
    int64_t[3] items

cdef struct MaybeIntegers3Row:
    int64_t is_there
    int64_t[3] value

cdef struct StorageRow:
    int64_t id, role, nbytes, dtype
    MaybeIntegers3Row extents

cdef struct BlockRow:
    int64_t kind, nbytes, alignment, type_bits
    Rows places

cdef struct PlaceRow:
    int64_t storage, offset, nbytes

cdef struct KernelRow:
    Text shader
    Rows constants

cdef struct Integers2Row:
    int64_t[2] items

cdef struct RowTableRow:
    int64_t source, offset, row_bytes, rows
    Text name

cdef struct MaybeRowTableRow:
    int64_t is_there
    RowTableRow value

cdef struct HostKernelRow:
    Text name
    Rows args, reads, writes
    MaybeRowTableRow table

cdef struct MaybeHostKernelRow:
    int64_t is_there
    HostKernelRow value

cdef struct SubmissionRecordRow:
    Rows commands
    MaybeHostKernelRow host

cdef struct DispatchCommandRow:
    int64_t kernel
    Rows bindings, push_constants
    int64_t[3] groups

cdef struct RangeRow:
    int64_t storage, offset, nbytes

cdef struct BindingRow:
    int64_t number, type
    RangeRow range
    int64_t format, is_written

cdef struct CopyCommandRow:
    RangeRow source, target

cdef struct BarrierCommandRow:
    int64_t source_stages, source_access, stages, access
    Rows images

cdef struct HostArrayRow:
    RangeRow range
    Rows sizes
    int64_t dtype

cdef struct MaybeHostArrayRow:
    int64_t is_there
    HostArrayRow value

cdef struct StridedCopyRow:
    Rows params
    int64_t itemsize, rows

cdef struct MaybeStridedCopyRow:
    int64_t is_there
    StridedCopyRow value

cdef struct WeightReadRow:
    int64_t storage, source, offset, nbytes, tail
    MaybeStridedCopyRow copy
    Text name

cdef struct PrepackBatchRow:
    Rows blocks, reads, commands

cdef struct StagedReadRow:
    int64_t source, offset, nbytes, staging_offset, zeros
    Text name

cdef struct StreamedWeightRow:
    WeightReadRow read
    Rows pieces

cdef struct UploadPieceRow:
    int64_t first_row, rows, offset, nbytes, target, target_bytes

cdef struct ReloadRow:
    int64_t ahead, after

cdef struct StateTensorRow:
    Text name
    Rows sizes
    int64_t dtype
    RangeRow range
    int64_t nbytes, source, offset, is_zero, places

cdef struct WeightRecordRow:
    Text name
    int64_t nbytes
    Text placement, why

cdef struct ReadRow:
    int64_t input, element

cdef struct LimitRow:
    ReadRow read
    int64_t low, high
    Text where

cdef struct IndexLimitRow:
    int64_t input, low, high
    Text where

cdef struct CompiledShapeRow:
    Rows inputs, outputs
    ExecutionPlanRow execution
    MemoryFiguresRow figures
    Rows limits, index_limits

cdef struct SharedUseRow:
    int64_t number
    Rows storages

cdef struct ModuleRow:
    Text name, sha256
    int64_t offset, nbytes
    Rows bindings
    int64_t push_bytes
    Rows capabilities

cdef struct ModuleBindingRow:
    int64_t number, type

# The tables of a file
cdef struct Records:
    const char* texts
    int64_t[TABLES] counts  # bytes of texts, then rows of each table
    const int64_t* nothing
    const int64_t* flag
    const int64_t* integer
    const double* number
    const Text* text
    const Rows* any_rows
    const ReadArgumentRow* read_argument
    const TensorRow* tensor
    const Member* any
    const ConstantMethodRow* constant_method
    const StorageRow* storage
    const PlaceRow* place
    const BlockRow* block
    const Integers2Row* integers_2
    const KernelRow* kernel
    const BindingRow* binding
    const DispatchCommandRow* dispatch_command
    const CopyCommandRow* copy_command
    const BarrierCommandRow* barrier_command
    const Member* command
    const HostArrayRow* host_array
    const SubmissionRecordRow* submission_record
    const MaybeHostArrayRow* maybe_host_array
    const WeightReadRow* weight_read
    const StagedReadRow* staged_read
    const PrepackBatchRow* prepack_batch
    const UploadPieceRow* upload_piece
    const StreamedWeightRow* streamed_weight
    const ReloadRow* reload
    const StateTensorRow* state_tensor
    const WeightRecordRow* weight_record
    const LimitRow* limit
    const IndexLimitRow* index_limit
    const Rows* integer_rows
    const CompiledShapeRow* compiled_shape
    const SharedUseRow* shared_use
    const CompiledMethodRow* compiled_method
    const CompiledTargetRow* compiled_target
    const ModuleBindingRow* module_binding
    const ModuleRow* module
    const CompiledRow* compiled
