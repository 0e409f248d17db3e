//! The tiles of AMX: sums of products of BF16 numbers, in FP32.
//!
//! What the instructions do is in the Intel Architecture Instruction Set Extensions reference and the SDM, volume 2
//! (`TDPBF16PS`), and volume 1, chapter 18 (detection, configuration). Stable Rust has no intrinsics for them.

use crate::machine::arithmetic::product::Line;
use crate::machine::arithmetic::tiles::{BLOCK, Form};
use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::LazyLock;

/// The tiles of this thread, configured; what they hold is lost when this is dropped.
pub struct Tiles {
    form: Form,
    /// A thread's own.
    here: PhantomData<*const ()>,
}

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// What `LDTILECFG` reads.
#[repr(C, align(64))]
struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_per_row: [u16; 16],
    rows: [u8; 16],
}

impl Tiles {
    /// Whether this CPU has such tiles, and the system lets the process use them.
    fn are_usable() -> bool {
        static USABLE: LazyLock<bool> = LazyLock::new(|| has_tiles() && permitted());
        *USABLE
    }

    /// `None`: they are not usable, or this thread holds them.
    pub fn new(form: Form) -> Option<Tiles> {
        if !Tiles::are_usable() || HELD.replace(true) {
            return None;
        }
        let mut config = Config { palette: 1, start_row: 0, reserved: [0; 14], bytes_per_row: [0; 16], rows: [0; 16] };
        // Four tiles of sums, two of A, two of B.
        config.bytes_per_row[..8].fill(64);
        config.rows[..8].fill(16);
        config.bytes_per_row[4..6].fill(4 * form.pairs() as u16);
        config.rows[6..8].fill(form.pairs() as u8);
        // SAFETY: CPU and system have the tiles; the configuration is 64 bytes, and one of palette 1: eight tiles of at most
        // 16 rows of 64 bytes. Rust code uses no tiles.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &config, options(nostack, preserves_flags, readonly)) };
        Some(Tiles { form, here: PhantomData })
    }

    /// D += A·B, step by step: of A 32 lines, of B twice the form's lines; each step as many lines after the one before as
    /// is said. Of D, twice 16 rows begin at `rows`, `pitch` words from one to the next.
    ///
    /// Products are exact. Those of a tile of A and a tile of B are added to each other in FP32, then to D, rounded to
    /// nearest. Subnormal numbers count as zero everywhere, results too.
    pub fn add(
        &mut self,
        steps: usize,
        (a, a_pitch): (&[Line<[u32; 16]>], usize),
        (b, b_pitch): ([&[Line<[u32; 16]>]; 2], usize),
        (d, rows, pitch): (&mut [u32], [usize; 2], usize),
    ) {
        let Some(last) = steps.checked_sub(1) else { return };
        let holds = |lines: &[_], pitch, least| {
            usize::checked_mul(last, pitch).and_then(|at| at.checked_add(least)).is_some_and(|end| end <= lines.len())
        };
        assert!(holds(a, a_pitch, BLOCK), "A has {} lines", a.len());
        for b in b {
            assert!(holds(b, b_pitch, self.form.lines()), "B has {} lines", b.len());
        }
        for first in rows {
            let end = pitch.checked_mul(15).and_then(|at| at.checked_add(first)?.checked_add(BLOCK));
            assert!(end.is_some_and(|end| end <= d.len()), "D has {} words", d.len());
        }
        let d = rows.map(|first| d[first..].as_mut_ptr());
        macro_rules! add {
            ($($more:literal),*) => {
                asm!(
                    "tileloadd tmm0, [{d0} + {d_pitch}]",
                    "tileloadd tmm1, [{d0} + {d_pitch} + 64]",
                    "tileloadd tmm2, [{d1} + {d_pitch}]",
                    "tileloadd tmm3, [{d1} + {d_pitch} + 64]",
                    "2:",
                    // All loads before the products: with a load between them they take a tenth longer, as do loads of `tileloaddt1`.
                    "tileloadd tmm6, [{b0} + {line}]",
                    "tileloadd tmm4, [{a} + {line}]",
                    "tileloadd tmm7, [{b1} + {line}]",
                    "tileloadd tmm5, [{a} + {line} + 1024]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    $($more,)*
                    "add {a}, {a_pitch}",
                    "add {b0}, {b_pitch}",
                    "add {b1}, {b_pitch}",
                    "dec {steps}",
                    "jnz 2b",
                    "tilestored [{d0} + {d_pitch}], tmm0",
                    "tilestored [{d0} + {d_pitch} + 64], tmm1",
                    "tilestored [{d1} + {d_pitch}], tmm2",
                    "tilestored [{d1} + {d_pitch} + 64], tmm3",
                    d0 = in(reg) d[0],
                    d1 = in(reg) d[1],
                    d_pitch = in(reg) pitch * 4,
                    line = in(reg) 64usize,
                    a = inout(reg) a.as_ptr() => _,
                    b0 = inout(reg) b[0].as_ptr() => _,
                    b1 = inout(reg) b[1].as_ptr() => _,
                    a_pitch = in(reg) a_pitch * 64,
                    b_pitch = in(reg) b_pitch * 64,
                    steps = inout(reg) steps => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                )
            };
        }
        // SAFETY: the tiles are configured, as `self` exists: for 16 rows of 64 bytes; of A for as many pairs, of B for as
        // many rows, as the form has. What is read and written lies where the assertions allow it; `d` is ours alone.
        unsafe {
            match self.form {
                Form::Bf16 => add!(),
                Form::Split => add!(
                    "tileloadd tmm6, [{b0} + {line} + 1024]",
                    "tileloadd tmm7, [{b1} + {line} + 1024]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7"
                ),
            }
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: the CPU has tiles, and this thread's are its own.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags, nomem)) };
        HELD.set(false);
    }
}

/// SDM volume 1, chapter 18: the CPU has tiles and products of BF16 numbers, and the system saves tiles.
fn has_tiles() -> bool {
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    const OSXSAVE: u32 = 1 << 27;
    const XTILECFG_XTILEDATA: u64 = 3 << 17;
    #[target_feature(enable = "xsave")]
    fn saved() -> u64 {
        // SAFETY: the caller has seen OSXSAVE.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: every x86-64 CPU has CPUID; whoever says OSXSAVE has XGETBV.
    unsafe {
        __cpuid(0).eax >= 7
            && __cpuid(1).ecx & OSXSAVE != 0
            && __cpuid_count(7, 0).edx & (BF16 | TILE) == BF16 | TILE
            && saved() & XTILECFG_XTILEDATA == XTILECFG_XTILEDATA
    }
}

/// Linux lets a process use tiles that asks for them (Documentation/arch/x86/xstate.rst).
fn permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const XTILEDATA: u64 = 18;
    let result: i64;
    // SAFETY: the call changes nothing but what this process may use.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XTILEDATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}
