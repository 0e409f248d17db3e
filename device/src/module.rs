//! PTX text, assembled by the driver: a kernel that can be launched.
#![allow(unsafe_code)] // Calls into the driver.

use crate::driver::{cuda, result};
use crate::error::Error;
use crate::gpu::{Context, Gpu};
use cudarc::driver::sys::{CUfunction, CUfunction_attribute as FunctionAttribute, CUjit_option as JitOption, CUmodule};
use std::cell::Cell;
use std::ffi::{CString, c_void};
use std::rc::Rc;

/// A kernel of a module.
pub struct Kernel {
    pub(crate) function: CUfunction,
    pub(crate) name: String,
    /// Offset and size of each parameter, in order.
    pub(crate) parameters: Vec<(usize, usize)>,
    /// The cluster that `.reqnctapercluster` asks for.
    pub(crate) required_cluster: Option<[u32; 3]>,
    /// `.explicitcluster`: the launch must name a cluster.
    pub(crate) explicit_cluster: bool,
    usage: Usage,
    /// Bytes of dynamic shared memory that the function was told of: it is the most that a launch may have, and only ever raised.
    pub(crate) told_shared: Cell<u32>,
    /// What the assembler said though it took the text.
    log: String,
    module: Rc<Module>,
}

/// What a kernel takes of an SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of static shared memory.
    pub static_shared: u32,
    /// Bytes of local memory of a thread: stack and spills.
    pub local: u32,
    /// Threads of a CTA, at most.
    pub max_threads: u32,
}

struct Module {
    context: Rc<Context>,
    handle: CUmodule,
}

impl Drop for Module {
    fn drop(&mut self) {
        if !self.context.dead.get() {
            // SAFETY: kernels of the module hold it, and so are gone.
            unsafe { cuda!(self.context.driver(), cuModuleUnload(self.handle)) };
        }
    }
}

/// Bytes of each log.
const LOG: usize = 64 << 10;

impl Gpu {
    /// Assembles a PTX text and finds an entry in it. Line information is kept, so that profilers show the program's lines.
    ///
    /// # Errors
    /// What the driver's assembler says, with its lines of PTX; or that there is no such entry.
    pub fn load(&self, ptx: &str, entry: &str) -> Result<Kernel, Error> {
        let context = &self.context;
        let what = format!("loading `{entry}`");
        let text = CString::new(ptx).map_err(|_| Error::refused(&what, "the PTX text holds a zero byte"))?;
        let name = CString::new(entry).map_err(|_| Error::refused(&what, "the entry's name holds a zero byte"))?;
        let (mut info, mut errors) = (vec![0u8; LOG], vec![0u8; LOG]);
        // Numbers go in the place of pointers.
        let number = |value: usize| value as *mut c_void;
        let mut options = [
            JitOption::CU_JIT_INFO_LOG_BUFFER,
            JitOption::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            JitOption::CU_JIT_ERROR_LOG_BUFFER,
            JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            JitOption::CU_JIT_GENERATE_LINE_INFO,
        ];
        let mut values: [*mut c_void; 5] =
            [info.as_mut_ptr().cast(), number(LOG), errors.as_mut_ptr().cast(), number(LOG), number(1)];
        let mut handle = std::ptr::null_mut();
        // SAFETY: the text ends with a zero; as many values as options; the logs are as long as is said.
        let code = unsafe {
            cuda!(
                context.driver(),
                cuModuleLoadDataEx(
                    &mut handle,
                    text.as_ptr().cast(),
                    options.len() as u32,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                )
            )
        };
        if let Err(mut error) = context.check(&what, code) {
            error.log = read(&errors);
            return Err(error);
        }
        let module = Rc::new(Module { context: Rc::clone(context), handle });
        let mut function = std::ptr::null_mut();
        // SAFETY: the name ends with a zero, the module is alive.
        let code = unsafe { cuda!(context.driver(), cuModuleGetFunction(&mut function, handle, name.as_ptr())) };
        if code != result::SUCCESS {
            let mut error = Error::of(&what, code, context.driver().name(code), context.driver().meaning(code));
            error.meaning = format!("the PTX text has no entry `{entry}`");
            return Err(error);
        }
        let number = |which| -> Result<u32, Error> {
            let mut value = 0;
            // SAFETY: writes one number.
            let code = unsafe { cuda!(context.driver(), cuFuncGetAttribute(&mut value, which, function)) };
            context.check(&what, code)?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let cluster = [
            number(FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)?,
            number(FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)?,
            number(FunctionAttribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)?,
        ];
        Ok(Kernel {
            function,
            name: entry.to_string(),
            parameters: parameters(context, function),
            required_cluster: (cluster[0] > 0).then_some(cluster.map(|extent| extent.max(1))),
            explicit_cluster: number(FunctionAttribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)? != 0,
            usage: Usage {
                registers: number(FunctionAttribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
                static_shared: number(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
                local: number(FunctionAttribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
                max_threads: number(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            },
            told_shared: Cell::new(0),
            log: read(&info),
            module,
        })
    }
}

impl Kernel {
    /// Name of the entry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it takes of an SM.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What the assembler said though it took the text: warnings.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// Offset and size of each parameter, in bytes.
    pub fn parameters(&self) -> &[(usize, usize)] {
        &self.parameters
    }

    pub(crate) fn is_of(&self, context: &Rc<Context>) -> bool {
        Rc::ptr_eq(&self.module.context, context)
    }
}

/// Asks until the driver says that there is no such parameter.
fn parameters(context: &Context, function: CUfunction) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: writes two numbers.
        let code = unsafe { cuda!(context.driver(), cuFuncGetParamInfo(function, all.len(), &mut offset, &mut size)) };
        if code != result::SUCCESS {
            return all;
        }
        all.push((offset, size));
    }
}

fn read(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).trim_end().to_string()
}
