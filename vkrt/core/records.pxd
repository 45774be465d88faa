# cython: language_level=3
"""The records of files as structs: rows of tables.

Written by `tools/records.py --write`, from the classes of vkrt/executable/program.py.
"""

from libc.stdint cimport int64_t

cdef enum:
    LAYOUT = 0xd11f9ada
    TABLES = 42
    TYPES = 97

cdef enum:
    TABLE_TEXTS = 0
    TABLE_NOTHING = 1
    TABLE_FLAG = 2
    TABLE_INTEGER = 3
    TABLE_NUMBER = 4
    TABLE_TEXT = 5
    TABLE_ANY_ROWS = 6
    TABLE_READ_ARGUMENT = 7
    TABLE_TENSOR = 8
    TABLE_ANY = 9
    TABLE_CONSTANT_METHOD = 10
    TABLE_STORAGE = 11
    TABLE_PLACE = 12
    TABLE_BLOCK = 13
    TABLE_INTEGERS_2 = 14
    TABLE_KERNEL = 15
    TABLE_BINDING = 16
    TABLE_DISPATCH_COMMAND = 17
    TABLE_COPY_COMMAND = 18
    TABLE_BARRIER_COMMAND = 19
    TABLE_COMMAND = 20
    TABLE_HOST_ARRAY = 21
    TABLE_SUBMISSION_RECORD = 22
    TABLE_MAYBE_HOST_ARRAY = 23
    TABLE_WEIGHT_READ = 24
    TABLE_STAGED_READ = 25
    TABLE_PREPACK_BATCH = 26
    TABLE_UPLOAD_PIECE = 27
    TABLE_STREAMED_WEIGHT = 28
    TABLE_RELOAD = 29
    TABLE_STATE_TENSOR = 30
    TABLE_WEIGHT_RECORD = 31
    TABLE_LIMIT = 32
    TABLE_INDEX_LIMIT = 33
    TABLE_INTEGER_ROWS = 34
    TABLE_COMPILED_SHAPE = 35
    TABLE_SHARED_USE = 36
    TABLE_COMPILED_METHOD = 37
    TABLE_COMPILED_TARGET = 38
    TABLE_MODULE_BINDING = 39
    TABLE_MODULE = 40
    TABLE_COMPILED = 41

cdef enum:
    ANY_NOTHING = 0
    ANY_FLAG = 1
    ANY_INTEGER = 2
    ANY_NUMBER = 3
    ANY_TEXT = 4
    ANY_ANY_ROWS = 5
    ANY_READ_ARGUMENT = 6
    ANY_TENSOR = 7

cdef enum:
    DTYPE_BOOL = 0
    DTYPE_UINT8 = 1
    DTYPE_INT8 = 2
    DTYPE_INT16 = 3
    DTYPE_UINT16 = 4
    DTYPE_INT32 = 5
    DTYPE_UINT32 = 6
    DTYPE_INT64 = 7
    DTYPE_UINT64 = 8
    DTYPE_FLOAT16 = 9
    DTYPE_BFLOAT16 = 10
    DTYPE_FLOAT32 = 11
    DTYPE_FLOAT64 = 12
    DTYPE_QUINT4X2 = 13
    DTYPE_QUINT2X4 = 14
    DTYPE_BITS1X8 = 15
    DTYPE_BITS2X4 = 16
    DTYPE_BITS4X2 = 17
    DTYPE_COMPLEX32 = 18
    DTYPE_COMPLEX64 = 19
    DTYPE_COMPLEX128 = 20
    DTYPE_QINT8 = 21
    DTYPE_QUINT8 = 22
    DTYPE_QINT32 = 23
    DTYPE_BITS8 = 24
    DTYPE_BITS16 = 25
    DTYPE_FLOAT8_E5M2 = 26
    DTYPE_FLOAT8_E4M3FN = 27
    DTYPE_FLOAT8_E5M2FNUZ = 28
    DTYPE_FLOAT8_E4M3FNUZ = 29

cdef enum:
    ROLE_WEIGHT = 0
    ROLE_ACTIVATION = 1
    ROLE_INPUT = 2
    ROLE_STATE = 3
    ROLE_SPILL = 4

cdef enum:
    BLOCK_KIND_WEIGHT = 0
    BLOCK_KIND_POOL = 1
    BLOCK_KIND_STATE = 2
    BLOCK_KIND_ACTIVATION = 3
    BLOCK_KIND_HOST = 4
    BLOCK_KIND_SPILL = 5

cdef enum:
    COMMAND_DISPATCH = 0
    COMMAND_COPY = 1
    COMMAND_BARRIER = 2

# Bytes of the texts
cdef struct Text:
    int64_t first
    int64_t count

# Rows of a table that follow one another
cdef struct Rows:
    int64_t first
    int64_t count

# Which member of a union, and its row
cdef struct Member:
    int64_t which
    int64_t row

cdef struct CompiledRow:
    Text vkrt
    Text program
    Rows constants
    Rows targets
    Rows modules

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
    int64_t offset
    int64_t nbytes
    int64_t dtype
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
    int64_t dtype
    int64_t host_dtype
    MaybeConstantRow constant
    Text name
    Rows dynamic_dims
    MaybeIntegerRowsRow bounds

cdef struct CompiledTargetRow:
    Text device
    Rows methods
    Rows shared

cdef struct ExecutionPlanRow:
    Rows storages
    Rows blocks
    Rows kernels
    Rows submissions
    Rows inputs
    Rows outputs
    int64_t skips_branches

cdef struct PrepackPlanRow:
    Rows kernels
    Rows batches
    int64_t staging_bytes

cdef struct ReloadPlanRow:
    int64_t prefetches
    Rows needed
    Rows reloads

cdef struct MaybeReloadPlanRow:
    int64_t is_there
    ReloadPlanRow value

cdef struct WeightPlanRow:
    Rows weights
    Rows contents
    Rows blocks
    int64_t is_eager
    Rows mapped
    Rows written
    PrepackPlanRow prepack
    Rows streamed
    int64_t upload_bytes
    MaybeReloadPlanRow reloads
    int64_t keeps_state

cdef struct StatePlanRow:
    Rows tensors
    Rows blocks

cdef struct MemoryFiguresRow:
    Text order
    int64_t weight_bytes
    int64_t largest_weight
    int64_t activation_bytes
    int64_t host_bytes
    int64_t staging_bytes
    int64_t peak_bytes
    int64_t lower_bound
    int64_t pool_bytes
    int64_t upload_bytes
    int64_t spill_bytes
    int64_t state_bytes
    int64_t row_bytes
    Text packing

cdef struct ExecutableRow:
    ExecutionPlanRow execution
    WeightPlanRow weights
    StatePlanRow states
    MemoryFiguresRow figures
    Rows placements
    Rows notes
    Text storage
    int64_t offset_alignment
    int64_t granularity
    int64_t shared_bytes
    int64_t loops

cdef struct MethodPlanRow:
    Rows methods
    Text method
    Rows inputs
    Rows outputs
    Rows input_names
    Rows output_names
    int64_t file_arena
    ExecutableRow executable
    Rows limits
    Rows index_limits

cdef struct CompiledMethodRow:
    MethodPlanRow largest
    Rows others
    Rows shared

cdef struct Integers3Row:
    int64_t[3] items

cdef struct MaybeIntegers3Row:
    int64_t is_there
    int64_t[3] value

cdef struct StorageRow:
    int64_t id
    int64_t role
    int64_t nbytes
    int64_t dtype
    MaybeIntegers3Row extents

cdef struct BlockRow:
    int64_t kind
    int64_t nbytes
    int64_t alignment
    int64_t type_bits
    Rows places

cdef struct PlaceRow:
    int64_t storage
    int64_t offset
    int64_t nbytes

cdef struct KernelRow:
    Text shader
    Rows constants

cdef struct Integers2Row:
    int64_t[2] items

cdef struct RowTableRow:
    int64_t source
    int64_t offset
    int64_t row_bytes
    int64_t rows
    Text name

cdef struct MaybeRowTableRow:
    int64_t is_there
    RowTableRow value

cdef struct HostKernelRow:
    Text name
    Rows args
    Rows reads
    Rows writes
    MaybeRowTableRow table

cdef struct MaybeHostKernelRow:
    int64_t is_there
    HostKernelRow value

cdef struct SubmissionRecordRow:
    Rows commands
    MaybeHostKernelRow host

cdef struct DispatchCommandRow:
    int64_t kernel
    Rows bindings
    Rows push_constants
    int64_t[3] groups

cdef struct RangeRow:
    int64_t storage
    int64_t offset
    int64_t nbytes

cdef struct BindingRow:
    int64_t number
    int64_t type
    RangeRow range
    int64_t format
    int64_t is_written

cdef struct CopyCommandRow:
    RangeRow source
    RangeRow target

cdef struct BarrierCommandRow:
    int64_t source_stages
    int64_t source_access
    int64_t stages
    int64_t access
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
    int64_t itemsize
    int64_t rows

cdef struct MaybeStridedCopyRow:
    int64_t is_there
    StridedCopyRow value

cdef struct WeightReadRow:
    int64_t storage
    int64_t source
    int64_t offset
    int64_t nbytes
    int64_t tail
    MaybeStridedCopyRow copy
    Text name

cdef struct PrepackBatchRow:
    Rows blocks
    Rows reads
    Rows commands

cdef struct StagedReadRow:
    int64_t source
    int64_t offset
    int64_t nbytes
    int64_t staging_offset
    int64_t zeros
    Text name

cdef struct StreamedWeightRow:
    WeightReadRow read
    Rows pieces

cdef struct UploadPieceRow:
    int64_t first_row
    int64_t rows
    int64_t offset
    int64_t nbytes
    int64_t target
    int64_t target_bytes

cdef struct ReloadRow:
    int64_t ahead
    int64_t after

cdef struct StateTensorRow:
    Text name
    Rows sizes
    int64_t dtype
    RangeRow range
    int64_t nbytes
    int64_t source
    int64_t offset
    int64_t is_zero
    int64_t places

cdef struct WeightRecordRow:
    Text name
    int64_t nbytes
    Text placement
    Text why

cdef struct ReadRow:
    int64_t input
    int64_t element

cdef struct LimitRow:
    ReadRow read
    int64_t low
    int64_t high
    Text where

cdef struct IndexLimitRow:
    int64_t input
    int64_t low
    int64_t high
    Text where

cdef struct CompiledShapeRow:
    Rows inputs
    Rows outputs
    ExecutionPlanRow execution
    MemoryFiguresRow figures
    Rows limits
    Rows index_limits

cdef struct SharedUseRow:
    int64_t number
    Rows storages

cdef struct ModuleRow:
    Text name
    Text sha256
    int64_t offset
    int64_t nbytes
    Rows bindings
    int64_t push_bytes
    Rows capabilities

cdef struct ModuleBindingRow:
    int64_t number
    int64_t type

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
