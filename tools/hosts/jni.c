/* What Program.kt beside this file calls: vkrt for Android and for any Java.
 *
 *     cc -shared -fPIC jni.c -o libvkrt_jni.so $(vkrt-config --cflags --libs)
 *
 * Inputs and outputs are direct byte buffers, which vkrt reads and writes in place. Errors are thrown as
 * org.vkrt.VkrtException. */
#include <jni.h>
#include <string.h>

#include "vkrt.h"

enum { MOST = 64 /* inputs, and outputs, of a method */ };

/* Throws the last error where a call has failed. */
static void check(JNIEnv *env, int code) {
    jclass type;
    jmethodID make;
    jstring text;
    if (code == VKRT_OK || (type = (*env)->FindClass(env, "org/vkrt/VkrtException")) == NULL
        || (make = (*env)->GetMethodID(env, type, "<init>", "(ILjava/lang/String;)V")) == NULL
        || (text = (*env)->NewStringUTF(env, vkrt_last_error_text())) == NULL)
        return; /* with what Java throws */
    (*env)->Throw(env, (*env)->NewObject(env, type, make, (jint)code, text));
}

static vkrt_program program_of(jlong handle) { return (vkrt_program)(uintptr_t)handle; }

/* The characters of a string, or null for none; released by `release`. */
static const char *text_of(JNIEnv *env, jstring text) {
    return text == NULL ? NULL : (*env)->GetStringUTFChars(env, text, NULL);
}

static void release(JNIEnv *env, jstring text, const char *characters) {
    if (characters != NULL)
        (*env)->ReleaseStringUTFChars(env, text, characters);
}

JNIEXPORT jlong JNICALL Java_org_vkrt_Program_load(JNIEnv *env, jclass self, jstring path) {
    vkrt_program program = NULL;
    const char *name = text_of(env, path);
    (void)self;
    if (!(*env)->ExceptionCheck(env))
        check(env, vkrt_load(name, NULL, &program));
    release(env, path, name);
    return (jlong)(uintptr_t)program;
}

JNIEXPORT jlong JNICALL Java_org_vkrt_Program_loadPart(JNIEnv *env, jclass self, jint descriptor,
                                                       jlong offset, jlong length) {
    vkrt_program program = NULL;
    (void)self;
    check(env, vkrt_load_fd(descriptor, (uint64_t)offset, (uint64_t)length, NULL, &program));
    return (jlong)(uintptr_t)program;
}

JNIEXPORT void JNICALL Java_org_vkrt_Program_unload(JNIEnv *env, jclass self, jlong handle) {
    (void)self;
    check(env, vkrt_close(program_of(handle)));
}

/* Tensors over direct buffers; sizes[i] is null for those that the method declares. */
static int take(JNIEnv *env, jobjectArray buffers, jobjectArray sizes, vkrt_tensor *tensors) {
    int index, count = (*env)->GetArrayLength(env, buffers);
    memset(tensors, 0, MOST * sizeof *tensors);
    for (index = 0; index < count && index < MOST; index++) {
        jobject buffer = (*env)->GetObjectArrayElement(env, buffers, index);
        jlongArray given = sizes == NULL ? NULL : (*env)->GetObjectArrayElement(env, sizes, index);
        vkrt_tensor *tensor = tensors + index;
        if (buffer != NULL) {
            tensor->data = (*env)->GetDirectBufferAddress(env, buffer);
            tensor->nbytes = (size_t)(*env)->GetDirectBufferCapacity(env, buffer);
        }
        if (given != NULL) {
            jlong numbers[VKRT_MAX_RANK];
            int rank = (*env)->GetArrayLength(env, given), dimension;
            if (rank > VKRT_MAX_RANK)
                return -1;
            (*env)->GetLongArrayRegion(env, given, 0, rank, numbers);
            for (dimension = 0; dimension < rank; dimension++)
                tensor->sizes[dimension] = numbers[dimension];
            tensor->rank = rank;
        }
        (*env)->DeleteLocalRef(env, given);
        (*env)->DeleteLocalRef(env, buffer);
    }
    return count <= MOST ? count : -1;
}

/* The dtype that a method declares, for an input whose sizes are given. */
static int declare(vkrt_program program, const char *method, int count, vkrt_tensor *inputs) {
    int index, code = VKRT_OK;
    for (index = 0; index < count && code == VKRT_OK; index++) {
        vkrt_tensor_info info = {0};
        info.size = sizeof info;
        if (inputs[index].rank != 0
            && (code = vkrt_input_get(program, method, (size_t)index, &info)) == VKRT_OK)
            inputs[index].dtype = info.dtype;
    }
    return code;
}

/* The bytes of every output. */
JNIEXPORT jlongArray JNICALL Java_org_vkrt_Program_run(JNIEnv *env, jclass self, jlong handle,
                                                       jstring method, jobjectArray inputs,
                                                       jobjectArray sizes, jobjectArray outputs) {
    vkrt_tensor given[MOST], made[MOST];
    jlong lengths[MOST];
    jlongArray result;
    int input_count = take(env, inputs, sizes, given), output_count = take(env, outputs, NULL, made);
    int index, code;
    const char *name;
    (void)self;
    if (input_count < 0 || output_count < 0) {
        (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/IllegalArgumentException"),
                         "more than 64 buffers, or 16 dimensions");
        return NULL;
    }
    name = text_of(env, method);
    if ((code = declare(program_of(handle), name, input_count, given)) == VKRT_OK)
        code = vkrt_run(program_of(handle), name, NULL, given, (size_t)input_count, made,
                        (size_t)output_count);
    release(env, method, name);
    check(env, code);
    if (code != VKRT_OK || (result = (*env)->NewLongArray(env, output_count)) == NULL)
        return NULL;
    for (index = 0; index < output_count; index++)
        lengths[index] = (jlong)made[index].nbytes;
    (*env)->SetLongArrayRegion(env, result, 0, output_count, lengths);
    return result;
}

JNIEXPORT void JNICALL Java_org_vkrt_Program_reset(JNIEnv *env, jclass self, jlong handle,
                                                   jstring method) {
    const char *name = text_of(env, method);
    (void)self;
    check(env, vkrt_state_reset(program_of(handle), name, NULL));
    release(env, method, name);
}

JNIEXPORT void JNICALL Java_org_vkrt_Program_cancel(JNIEnv *env, jclass self, jlong handle,
                                                    jstring method) {
    const char *name = text_of(env, method);
    (void)self;
    check(env, vkrt_cancel(program_of(handle), name));
    release(env, method, name);
}
