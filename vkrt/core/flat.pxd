from libc.stdint cimport int64_t, uint64_t

from vkrt.core.error cimport Error
from vkrt.core.records cimport Records, Text

cdef extern from * nogil:
    """
    #ifndef VKRT_CORE_FLAT
    #define VKRT_CORE_FLAT
    /* Kinds of types: how the words of a value are read. README.md says what they are. */
    enum { VKRT_INT, VKRT_FLAG, VKRT_FLOAT, VKRT_TEXT, VKRT_NONE, VKRT_ENUM, VKRT_RECORD,
           VKRT_ROWS, VKRT_OPTIONAL, VKRT_UNION };
    typedef struct { int type; const char *name; } VkrtPart;
    typedef struct {
        const char *name; int kind, width, table, first, count, is_plain, is_leaf;
    } VkrtType;
    int vkrt_name_word(const void *records, const void *word, VkrtError *error, int status);
    /* Says which word of which row is wrong, and what is expected there: VKRT_ERROR_FORMAT. */
    #define VKRT_REFUSED(records, word, error, ...) \\
        vkrt_name_word(records, word, error, VKRT_FAIL(error, VKRT_ERROR_FORMAT, __VA_ARGS__))
    #define VKRT_WRONG(check, word, ...) \\
        VKRT_REFUSED((check)->records, word, (check)->error, __VA_ARGS__)
    #endif
    """
    int refused "VKRT_REFUSED"(const Records* records, const void* word, Error* error,
                               const char* form, ...) noexcept
    # The same of any struct with fields of the names `records` and `error`
    int wrong "VKRT_WRONG"(void* check, const void* word, const char* form, ...) noexcept

    enum:
        INT "VKRT_INT"
        FLAG "VKRT_FLAG"
        FLOAT "VKRT_FLOAT"
        TEXT "VKRT_TEXT"
        NONE "VKRT_NONE"
        ENUM "VKRT_ENUM"
        RECORD "VKRT_RECORD"
        ROWS "VKRT_ROWS"
        OPTIONAL "VKRT_OPTIONAL"
        UNION "VKRT_UNION"

    # A field, the type of rows, a member of a union or a name of an enumeration
    ctypedef struct Part "VkrtPart":
        int type  # number of its type, -1 of a name
        const char* name

    ctypedef struct Type "VkrtType":
        const char* name  # in Python
        int kind
        int width  # words of a value
        int table  # in which its rows are, 0: it has none
        int first  # of its parts
        int count  # of its parts
        bint is_plain  # any words are a value
        bint is_leaf  # its words refer to no table

cdef enum:
    RECORDS_VERSION = 5
    # Bytes before the tables' sizes: magic, u32 version, u32 layout, u64 checksum
    RECORDS_HEADER = 24
    # Tables of texts in a tuple in a tuple ..
    MOST_DEPTH = 64

cdef extern nogil:
    int open_records "vkrt_open_records"(const void* data, size_t nbytes, Records* records,
                                         Error* error)
    uint64_t checksum_of "vkrt_checksum"(const void* data, size_t nbytes)
    # Where the text of `error` says what is expected: puts the word before it, and returns
    # `status`.
    int name_word "vkrt_name_word"(const void* records, const void* word, Error* error, int status)
    bint equal_texts "vkrt_equal_texts"(const Records* records, const Text* a, const Text* b)
    bint is_text "vkrt_is_text"(const Records* records, const Text* text, const char* expected)

    # For those who make and read records of any type
    const char* records_magic "vkrt_records_magic"()
    const Type* type_at "vkrt_type_at"(int number)
    const Type* table_type "vkrt_table_type"(int table)
    const Part* part_at "vkrt_part_at"(int number)
    const int64_t* words_of "vkrt_words_of"(const Records* records, int table)
    void point_to_table "vkrt_point_to_table"(Records* records, int table, const int64_t* words)
