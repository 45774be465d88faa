//! Runs a program through vkrt.h from Rust, with declarations written by hand.
//!
//!     host program.pte
//!
//! Prints the first numbers of every output (of 32-bit floats) at inputs of zeros.
//!
//!     rustc host.rs -C link-arg=$FOLDER/libvkrt.so.0 -C link-arg=-Wl,-rpath,$FOLDER
//!
//! where FOLDER is what `vkrt-config --folder` says.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::mem::{size_of, zeroed};
use std::ptr::null;

const MAX_NAME: usize = 128;
const MAX_RANK: usize = 16;
const FLOAT32: i32 = 1;

/// A handle: a number that is never dereferenced.
type Program = *mut c_void;

#[repr(C)]
struct MethodInfo {
    size: usize,
    name: [c_char; MAX_NAME],
    input_count: usize,
    output_count: usize,
}

#[repr(C)]
struct TensorInfo {
    size: usize,
    name: [c_char; MAX_NAME],
    dtype: i32,
    rank: i32,
    sizes: [i64; MAX_RANK],
    dynamic: u32,
    nbytes: u64,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    nbytes: usize,
    dtype: i32,
    rank: i32,
    sizes: [i64; MAX_RANK],
}

type GetInfo = unsafe extern "C" fn(Program, *const c_char, usize, *mut TensorInfo) -> c_int;

extern "C" {
    fn vkrt_last_error_text() -> *const c_char;
    fn vkrt_load(path: *const c_char, options: *const c_void, program: *mut Program) -> c_int;
    fn vkrt_close(program: Program) -> c_int;
    fn vkrt_method_get(program: Program, index: usize, info: *mut MethodInfo) -> c_int;
    fn vkrt_input_get(program: Program, method: *const c_char, index: usize,
                      info: *mut TensorInfo) -> c_int;
    fn vkrt_output_get(program: Program, method: *const c_char, index: usize,
                       info: *mut TensorInfo) -> c_int;
    fn vkrt_run(program: Program, method: *const c_char, state: *mut c_void,
                inputs: *const Tensor, input_count: usize, outputs: *mut Tensor,
                output_count: usize) -> c_int;
}

/// The code of a call as a result, with the words of the library.
fn check(code: c_int) -> Result<(), String> {
    if code == 0 {
        return Ok(());
    }
    // The text is this thread's, and lasts until its next call fails.
    let text = unsafe { CStr::from_ptr(vkrt_last_error_text()) };
    Err(text.to_string_lossy().into_owned())
}

/// Memory, and tensors over it, for all inputs or all outputs; 8-byte words, so that it is aligned.
fn allocate(program: Program, count: usize, get: GetInfo)
            -> Result<(Vec<Vec<u64>>, Vec<Tensor>), String> {
    let (mut memory, mut tensors) = (Vec::new(), Vec::new());
    for index in 0..count {
        let mut info: TensorInfo = unsafe { zeroed() };
        info.size = size_of::<TensorInfo>();
        check(unsafe { get(program, null(), index, &mut info) })?;
        let nbytes = info.nbytes as usize;
        let mut words = vec![0u64; nbytes / 8 + 1];
        let data = words.as_mut_ptr().cast();
        // A vector that is moved keeps its memory where it is.
        memory.push(words);
        tensors.push(Tensor {
            data, nbytes, dtype: info.dtype, rank: info.rank, sizes: info.sizes,
        });
    }
    Ok((memory, tensors))
}

fn run(program: Program) -> Result<(), String> {
    let mut method: MethodInfo = unsafe { zeroed() };
    method.size = size_of::<MethodInfo>();
    check(unsafe { vkrt_method_get(program, 0, &mut method) })?;
    let (_inputs_memory, inputs) = allocate(program, method.input_count, vkrt_input_get)?;
    let (_outputs_memory, mut outputs) = allocate(program, method.output_count, vkrt_output_get)?;
    check(unsafe {
        vkrt_run(program, method.name.as_ptr(), std::ptr::null_mut(), inputs.as_ptr(),
                 inputs.len(), outputs.as_mut_ptr(), outputs.len())
    })?;
    for (index, output) in outputs.iter().enumerate() {
        if output.dtype != FLOAT32 {
            return Err(format!("output {index}: not 32-bit floats"));
        }
        let count = (output.nbytes / 4).min(3);
        let numbers = unsafe { std::slice::from_raw_parts(output.data as *const f32, count) };
        let words: Vec<String> = numbers.iter().map(|number| format!("{number:.6}")).collect();
        println!("output {index}: {:?} {}", &output.sizes[..output.rank as usize],
                 words.join(" "));
    }
    Ok(())
}

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: host program.pte");
        std::process::exit(2);
    };
    let path = CString::new(path).expect("an argument has no zeros in it");
    let mut program: Program = std::ptr::null_mut();
    let done = check(unsafe { vkrt_load(path.as_ptr(), null(), &mut program) }).and_then(|()| {
        let result = run(program);
        unsafe { vkrt_close(program) };
        result
    });
    if let Err(text) = done {
        eprintln!("host: {text}");
        std::process::exit(1);
    }
}
