/* Starts an embedded Python, or joins the one that runs, and asks vkrt.capi._capi for its table.
 *
 * Nothing of Python is linked: its library is opened when it is needed, unless the process has one
 * already. The headers of Python only say what PyConfig looks like. */
#include <Python.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "table.h"

#define SHARED_OBJECT "libpython" VKRT_PYTHON ".so.1.0"

/* What is used of Python, by the names that it has there */
#define FUNCTIONS(F) \
    F(Py_IsInitialized) F(Py_GetVersion) F(Py_PreInitialize) F(PyPreConfig_InitIsolatedConfig) \
    F(PyConfig_InitIsolatedConfig) F(PyConfig_SetBytesString) F(PyConfig_Clear) \
    F(PyStatus_Exception) F(Py_InitializeFromConfig) F(PyEval_SaveThread) F(PyGILState_Ensure) \
    F(PyGILState_Release) F(PyInterpreterState_Main) F(PyInterpreterState_Get) \
    F(PyInterpreterState_Head) F(PyInterpreterState_Next) F(PyThreadState_GetInterpreter) \
    F(PyThread_get_thread_ident) F(PyImport_ImportModule) \
    F(PyObject_GetAttrString) F(PyCapsule_GetPointer) F(PyErr_Fetch) F(PyObject_Str) \
    F(PyUnicode_AsUTF8) F(PyUnicode_DecodeFSDefault) F(PySys_GetObject) F(PyList_Append) \
    F(PyErr_Clear) F(Py_DecRef) F(Py_AtExit) F(PyObject_CallNoArgs) F(PyGC_Enable) F(PyGC_Disable)

/* The state of the thread that runs, or null; with a name of its own since 3.13 */
#if PY_VERSION_HEX >= 0x030d0000
#define CURRENT(F) F(PyThreadState_GetUnchecked)
#else
#define CURRENT(F) F(_PyThreadState_UncheckedGet)
#endif
#define CALL_CURRENT(name) py.name()

static struct {
#define DECLARE(name) __typeof__(&name) name;
    FUNCTIONS(DECLARE)
    CURRENT(DECLARE)
#undef DECLARE
} py;

/* Held while Python is looked for and started, never while its lock is wanted or held */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static int found;
/* The process that Python was started in; 0 where it was joined, which knows of its forks itself */
static pid_t starter;
static char home[PATH_MAX];
static const vkrt_table *table;
/* Whether the Python with the table was ended. The process may run another one, in which modules
 * in C that were imported before cannot be imported again. */
static int ended;

static int fail(vkrt_failure *failure, int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    failure->code = code;
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    return 0;
}

int vkrt_choose_home(vkrt_failure *failure, const char *folder) {
    int chosen = 0;
    pthread_mutex_lock(&starting);
    if (found)
        fail(failure, VKRT_ERROR_PYTHON, "vkrt_set_home: Python runs already");
    else if (folder == NULL || strlen(folder) >= sizeof home)
        fail(failure, VKRT_ERROR_INPUT, "vkrt_set_home: expected the name of a folder");
    else
        chosen = strcpy(home, folder) != NULL;
    pthread_mutex_unlock(&starting);
    return chosen ? VKRT_OK : failure->code;
}

/* ---- Finding ---- */

/* Takes the functions from a shared object, or from the process itself. */
static int take_functions(void *object) {
#define TAKE(name) \
    if ((*(void **)&py.name = dlsym(object, #name)) == NULL) \
        return 0;
    FUNCTIONS(TAKE)
    CURRENT(TAKE)
#undef TAKE
    return 1;
}

/* A Python that the process has: it is the program itself, or one of its libraries. */
static int is_running(void) {
    void *object = dlopen(SHARED_OBJECT, RTLD_NOW | RTLD_NOLOAD);
    if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL)
        object = RTLD_DEFAULT;
    else if (object == NULL)
        return 0;
    return take_functions(object) && py.Py_IsInitialized();
}

static void *open_in(const char *folder, const char *file) {
    char name[PATH_MAX];
    /* Global, because extension modules take their symbols from the process. */
    return vkrt_file_in(name, sizeof name, folder, file) ? dlopen(name, RTLD_NOW | RTLD_GLOBAL)
                                                         : NULL;
}

/* The library of Python, from the most to the least exact place. */
static void *open_python(void) {
    char folder[PATH_MAX], name[PATH_MAX], real[PATH_MAX];
    void *object = NULL;
    if (*home) {
        object = open_in(home, "lib/" SHARED_OBJECT);
        if (object == NULL && vkrt_base_of(folder, sizeof folder, home))
            object = open_in(folder, "lib/" SHARED_OBJECT);
        if (object == NULL && vkrt_file_in(name, sizeof name, home, "bin/python" VKRT_PYTHON)
            && realpath(name, real) != NULL && strlen(real) + 8 < sizeof real) {
            strcat(real, "/../..");
            object = realpath(real, folder) ? open_in(folder, "lib/" SHARED_OBJECT) : NULL;
        }
    }
    if (object == NULL)
        object = dlopen(SHARED_OBJECT, RTLD_NOW | RTLD_GLOBAL);
    return object;
}

/* ---- Starting ---- */

static int set_path(PyConfig *config, wchar_t **field, const char *value, PyStatus *status) {
    *status = py.PyConfig_SetBytesString(config, field, value);
    return !py.PyStatus_Exception(*status);
}

/* Python's module of signals takes Ctrl-C for itself when something imports it first, whatever
 * PyConfig says: so it is imported now, and Ctrl-C is given back. */
static void give_back_interrupts(const struct sigaction *kept) {
    PyObject *module = py.PyImport_ImportModule("_signal");
    if (module == NULL)
        py.PyErr_Clear();
    py.Py_DecRef(module);
    sigaction(SIGINT, kept, NULL);
}

/* An interpreter that leaves the host's signals, locale, environment and streams alone. */
static int start(vkrt_failure *failure) {
    PyPreConfig before;
    PyConfig config;
    PyStatus status;
    char executable[PATH_MAX];
    struct sigaction interrupt;
    sigaction(SIGINT, NULL, &interrupt);
    py.PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1; /* whatever the host's locale is */
    status = py.Py_PreInitialize(&before);
    if (py.PyStatus_Exception(status))
        return fail(failure, VKRT_ERROR_PYTHON, "Python does not start: %s", status.err_msg);
    py.PyConfig_InitIsolatedConfig(&config);
    config.install_signal_handlers = 0;
    config.configure_c_stdio = 0;
    config.pathconfig_warnings = 0;
    if (!*home
        || (vkrt_file_in(executable, sizeof executable, home, "bin/python" VKRT_PYTHON)
                ? set_path(&config, &config.executable, executable, &status)
                : set_path(&config, &config.home, home, &status)))
        status = py.Py_InitializeFromConfig(&config);
    py.PyConfig_Clear(&config);
    if (py.PyStatus_Exception(status))
        return fail(failure, VKRT_ERROR_PYTHON, "Python in '%s' does not start: %s", home,
                    status.err_msg ? status.err_msg : "no reason given");
    give_back_interrupts(&interrupt);
    starter = getpid();
    /* Whoever calls first is no more than others are. */
    py.PyEval_SaveThread();
    return 1;
}

static int find(vkrt_failure *failure) {
    const char *named = getenv("VKRT_HOME");
    if (is_running())
        return 1;
    if (!*home && named != NULL && strlen(named) < sizeof home)
        strcpy(home, named);
    if (!*home && !vkrt_home_of_library(home, sizeof home))
        *home = 0;
    void *object = open_python();
    if (object == NULL || !take_functions(object))
        return fail(failure, VKRT_ERROR_PYTHON,
                    "cannot open " SHARED_OBJECT "%s%s: set VKRT_HOME to the folder of a Python "
                    VKRT_PYTHON ", or of a virtual environment, in which vkrt is installed (%s)",
                    *home ? " of " : "", home, object == NULL ? dlerror() : "it lacks functions");
    return py.Py_IsInitialized() || start(failure);
}

/* ---- Joining ---- */

/* Whether the calling thread is at work in a sub-interpreter: vkrt lives in the main one, and would
 * wait for ever for a lock that the thread holds. */
static int in_subinterpreter(void) {
    PyInterpreterState *head = py.PyInterpreterState_Head();
    PyThreadState *state;
    if (py.PyInterpreterState_Next(head) == NULL)
        return 0;
    /* Of this thread since 3.12; before, of whichever thread runs. */
    state = CURRENT(CALL_CURRENT);
    return state != NULL && state->thread_id == py.PyThread_get_thread_ident()
           && py.PyThreadState_GetInterpreter(state) != py.PyInterpreterState_Main();
}

static void take_error(vkrt_failure *failure, const char *what) {
    PyObject *type = NULL, *value = NULL, *traceback = NULL, *text;
    py.PyErr_Fetch(&type, &value, &traceback);
    text = value != NULL ? py.PyObject_Str(value) : NULL;
    fail(failure, VKRT_ERROR_PYTHON, "%s: %s%s%s", what,
         text != NULL ? py.PyUnicode_AsUTF8(text) : "unknown error",
         *home ? "; Python is that of "
               : "; set VKRT_HOME to the folder of the Python in which it is installed",
         home);
    py.Py_DecRef(text);
    py.Py_DecRef(type);
    py.Py_DecRef(value);
    py.Py_DecRef(traceback);
}

/* Lets the package be found that this library is a part of. */
static void add_own_folder(void) {
    char folder[PATH_MAX], name[PATH_MAX];
    PyObject *path = py.PySys_GetObject("path"), *entry;
    if (path == NULL || !vkrt_folder_of_library(folder, sizeof folder)
        || !vkrt_file_in(name, sizeof name, folder, "../__init__.py")
        || snprintf(name, sizeof name, "%s/../..", folder) >= (int)sizeof name
        || realpath(name, folder) == NULL)
        return;
    entry = py.PyUnicode_DecodeFSDefault(folder);
    if (entry == NULL || py.PyList_Append(path, entry))
        py.PyErr_Clear();
    py.Py_DecRef(entry);
}

/* Tells Python's collector that what there is now stays: it need not be looked through again. */
static void freeze(void) {
    PyObject *module = py.PyImport_ImportModule("gc");
    PyObject *function = module != NULL ? py.PyObject_GetAttrString(module, "freeze") : NULL;
    PyObject *result = function != NULL ? py.PyObject_CallNoArgs(function) : NULL;
    if (result == NULL)
        py.PyErr_Clear();
    py.Py_DecRef(result);
    py.Py_DecRef(function);
    py.Py_DecRef(module);
}

/* Imports the module with the table. In a Python of the library's own the collector waits until
 * then: what is made by imports is no garbage. */
static PyObject *import_module(void) {
    PyObject *module;
    if (starter != 0)
        py.PyGC_Disable();
    module = py.PyImport_ImportModule("vkrt.capi._capi");
    if (module == NULL) {
        py.PyErr_Clear();
        add_own_folder();
        module = py.PyImport_ImportModule("vkrt.capi._capi");
    }
    if (starter != 0) {
        py.PyGC_Enable();
        if (module != NULL)
            freeze();
    }
    return module;
}

/* The module's table; the thread holds Python's lock. */
static const vkrt_table *import_table(vkrt_failure *failure) {
    const vkrt_table *result = NULL;
    PyObject *module, *capsule;
    if (py.PyInterpreterState_Get() != py.PyInterpreterState_Main()) {
        fail(failure, VKRT_ERROR_PYTHON, "called from a sub-interpreter; vkrt runs in the main one");
        return NULL;
    }
    module = import_module();
    capsule = module != NULL ? py.PyObject_GetAttrString(module, "table") : NULL;
    if (capsule != NULL)
        result = py.PyCapsule_GetPointer(capsule, VKRT_TABLE_NAME);
    if (result == NULL)
        take_error(failure, "cannot import vkrt");
    else if (result->version != VKRT_TABLE_VERSION) {
        fail(failure, VKRT_ERROR_PYTHON, "the library and the package vkrt are not of one build");
        result = NULL;
    }
    py.Py_DecRef(capsule);
    py.Py_DecRef(module);
    return result;
}

static void note_end(void) { __atomic_store_n(&ended, 1, __ATOMIC_RELEASE); }

static const vkrt_table *join(vkrt_failure *failure) {
    const vkrt_table *result;
    PyGILState_STATE lock;
    const char *version = py.Py_GetVersion();
    size_t length = strlen(VKRT_PYTHON);
    if (strncmp(version, VKRT_PYTHON, length) != 0 || version[length] != '.') {
        fail(failure, VKRT_ERROR_PYTHON, "this process runs Python %s, and this libvkrt is for "
             VKRT_PYTHON, version);
        return NULL;
    }
    lock = py.PyGILState_Ensure();
    result = import_table(failure);
    if (result != NULL && py.Py_AtExit(note_end) != 0) {
        fail(failure, VKRT_ERROR_PYTHON, "Python calls no more than 32 functions when it is ended, "
             "and this process has given it all of them");
        result = NULL;
    }
    py.PyGILState_Release(lock);
    return result;
}

int vkrt_has_python(void) {
    int answer;
    pthread_mutex_lock(&starting);
    answer = found;
    pthread_mutex_unlock(&starting);
    return answer;
}

int vkrt_has_table(void) { return __atomic_load_n(&table, __ATOMIC_ACQUIRE) != NULL; }

const vkrt_table *vkrt_find_table(vkrt_failure *failure) {
    const vkrt_table *result = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    int ready;
    pthread_mutex_lock(&starting);
    ready = found || (found = find(failure));
    pthread_mutex_unlock(&starting);
    if (!ready)
        return NULL;
    if (starter != 0 && starter != getpid()) {
        /* Python's lock may be held by a thread that only the parent has. */
        fail(failure, VKRT_ERROR_FORKED, "this process was forked after vkrt was first called");
        return NULL;
    }
    if (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) || !py.Py_IsInitialized()) {
        fail(failure, VKRT_ERROR_PYTHON, "Python has been ended in this process, and vkrt with it");
        return NULL;
    }
    if (in_subinterpreter()) {
        fail(failure, VKRT_ERROR_PYTHON, "called from a sub-interpreter; vkrt runs in the main one");
        return NULL;
    }
    if (result == NULL) {
        result = join(failure);
        __atomic_store_n(&table, result, __ATOMIC_RELEASE);
    }
    return result;
}
