package org.vkrt

import java.nio.ByteBuffer

/** What vkrt says of a call that failed; `code` is one of vkrt.h. */
class VkrtException(val code: Int, message: String) : RuntimeException(message)

/**
 * A compiled program (`vkrt compile model.pte --target generic`) on the device, by `jni.c` beside this file.
 *
 * In an asset of an app that is not compressed (`androidResources { noCompress += "vkx" }`):
 *
 *     val program = assets.openFd("model.vkx").use {
 *         Program(it.parcelFileDescriptor.fd, it.startOffset, it.length)
 *     }
 *     val output = ByteBuffer.allocateDirect(4000).order(ByteOrder.nativeOrder())
 *     program.run(arrayOf(input), arrayOf(output))
 *
 * A method runs once at a time; `cancel` may be called by any thread, the others by one.
 */
class Program private constructor(private var handle: Long) : AutoCloseable {
    constructor(path: String) : this(load(path))

    /** The descriptor may be closed afterwards. */
    constructor(descriptor: Int, offset: Long, length: Long) : this(loadPart(descriptor, offset, length))

    /**
     * Runs a method once.
     *
     * @param inputs direct buffers of contiguous elements, of the dtypes that the method declares
     * @param outputs direct buffers with room for the outputs
     * @param sizes of each input, for dynamic ones; null: those that the method declares
     * @return the bytes of each output
     */
    fun run(
        inputs: Array<ByteBuffer>,
        outputs: Array<ByteBuffer>,
        method: String? = null,
        sizes: Array<LongArray?>? = null,
    ): LongArray {
        require((inputs + outputs).all { it.isDirect }) { "buffers have to be direct (ByteBuffer.allocateDirect)" }
        require(sizes == null || sizes.size == inputs.size) { "sizes of ${sizes?.size} of ${inputs.size} inputs" }
        return run(handle, method, inputs, sizes, outputs)
    }

    /** Gives the states of a method their initial values. */
    fun reset(method: String? = null) = reset(handle, method)

    /** Ends the run of a method that another thread waits for, which throws. */
    fun cancel(method: String? = null) = cancel(handle, method)

    override fun close() {
        if (handle != 0L) unload(handle)
        handle = 0L
    }

    private companion object {
        init {
            System.loadLibrary("vkrt_jni")
        }

        @JvmStatic external fun load(path: String): Long
        @JvmStatic external fun loadPart(descriptor: Int, offset: Long, length: Long): Long
        @JvmStatic external fun unload(handle: Long)
        @JvmStatic external fun run(
            handle: Long, method: String?, inputs: Array<ByteBuffer>, sizes: Array<LongArray?>?,
            outputs: Array<ByteBuffer>,
        ): LongArray
        @JvmStatic external fun reset(handle: Long, method: String?)
        @JvmStatic external fun cancel(handle: Long, method: String?)
    }
}
