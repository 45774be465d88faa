"""Headers of the Python that runs this, with a pyconfig.h for any system: python_headers.py FOLDER

What Cython makes of the core includes them and calls nothing. `Python.h` takes the `pyconfig.h`
that lies beside it, which is why all of them are copied.
"""

import shutil
import sys
import sysconfig

PYCONFIG = "".join(f"#define {line}\n" for line in """\
SIZEOF_SHORT __SIZEOF_SHORT__
SIZEOF_INT __SIZEOF_INT__
SIZEOF_LONG __SIZEOF_LONG__
SIZEOF_LONG_LONG __SIZEOF_LONG_LONG__
SIZEOF_VOID_P __SIZEOF_POINTER__
SIZEOF_SIZE_T __SIZEOF_SIZE_T__
SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
SIZEOF_FLOAT __SIZEOF_FLOAT__
SIZEOF_DOUBLE __SIZEOF_DOUBLE__
SIZEOF_PTHREAD_T __SIZEOF_POINTER__
ALIGNOF_LONG _Alignof(long)
ALIGNOF_SIZE_T _Alignof(size_t)
ALIGNOF_MAX_ALIGN_T __BIGGEST_ALIGNMENT__
HAVE_STDARG_PROTOTYPES 1
HAVE_LONG_LONG 1
HAVE_PTHREAD_H 1
HAVE_UNISTD_H 1
HAVE_SYS_TYPES_H 1
HAVE_SYS_TIME_H 1
HAVE_INTTYPES_H 1
HAVE_STDINT_H 1
HAVE_WCHAR_H 1
WITH_THREAD 1
PY_FORMAT_SIZE_T "z"
""".splitlines())

folder = sys.argv[1]
shutil.rmtree(folder, ignore_errors=True)
shutil.copytree(sysconfig.get_paths()["include"], folder,
                ignore=shutil.ignore_patterns("pyconfig*.h"))
with open(f"{folder}/pyconfig.h", "w") as file:
    file.write(PYCONFIG)
print(folder)
