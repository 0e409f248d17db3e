//! What was assumed until a GPU was asked. `emulate --assumptions` prints this list behind what is still assumed.

/// Something that documents leave open, and recordings of a Hopper GPU settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// A stable name.
    pub name: &'static str,
    /// What holds.
    pub holds: &'static str,
    /// Cases of `tests/silicon` with a recording of an H200, or an H100, that show it.
    pub cases: &'static [&'static str],
}

/// Every fact, in alphabetical order. All were measured on an H200 or an H100, compute capability 9.0; that Blackwell does the same is assumed.
pub const SETTLED: &[Settled] = &[
    Settled {
        name: "box-bytes-outside",
        holds: "Elements of a box outside of the tensor are filled and count on the mbarrier, also if all of them lie outside.",
        cases: &[
            "out_of_bounds/right_edge",
            "out_of_bounds/bottom_edge",
            "out_of_bounds/all_outside",
            "out_of_bounds/negative_coordinates",
            "out_of_bounds/swizzled_edge",
        ],
    },
    Settled {
        name: "bytes-before-expect",
        holds: "Bytes may come to an mbarrier before they are expected: the count goes below zero, holds the phase, and meets the expectation later.",
        cases: &["mbarrier/bytes_before_expect", "mbarrier/expect_apart_from_arrival"],
    },
    Settled {
        name: "cluster-window",
        holds: "A shared::cluster address is the rank in bits 24 and up over the offset in the CTA's window; the address that a CTA takes of its own variable holds its own rank.",
        cases: &["address/cluster_window", "address/generic_window", "address/own_rank_included"],
    },
    Settled {
        name: "division-by-zero",
        holds: "An integer quotient and a remainder by zero are all ones, of 32 bits with and without sign; other widths are taken to be alike.",
        cases: &["integer/division"],
    },
    Settled {
        name: "dynamic-shared-memory",
        holds: "Dynamic shared memory begins behind the static variables at its own alignment, or behind the 1024 bytes that the system keeps.",
        cases: &["address/dynamic_base", "address/dynamic_base_alone", "address/static_base"],
    },
    Settled {
        name: "elected-lane",
        holds: "elect.sync elects the lowest lane of the member mask. Kernels of CUTLASS 4 trap if it is another one.",
        cases: &["lanes/elect"],
    },
    Settled {
        name: "element-strides",
        holds: "A box takes its extent divided by the element stride, rounded up, of elements; the innermost stride is not looked at.",
        cases: &[
            "element_strides/odd_box",
            "element_strides/every_third_row",
            "element_strides/three_dimensions",
            "element_strides/innermost",
        ],
    },
    Settled {
        name: "invalidated-without-an-mbarrier",
        holds: "mbarrier.inval of a place that holds no mbarrier changes none of its bytes; one that is initialised there next counts as any other.",
        cases: &["mbarrier/invalidated_before_initialised"],
    },
    Settled {
        name: "mma-sync-fp8",
        holds: "mma.sync of FP8 gives two products in FP16, of the low and of the high halves of the registers, to which C is added with one rounding.",
        cases: &[
            "warp_mma/m16n8k32_e4m3_e4m3_f32",
            "warp_mma/m16n8k32_e5m2_e4m3_f32",
            "warp_mma/m16n8k32_e5m2_e5m2_f16",
            "warp_mma/m16n8k16_e4m3_e4m3_f16",
        ],
    },
    Settled {
        name: "nan-bits",
        holds: "A NaN result is 0x7fffffff, or 0x7fff in 16 bits, also of neg and abs; FP64 keeps sign and payload, and gives 0xfff8000000000000 for infinity minus infinity; BF16 to FP32 keeps all bits.",
        cases: &[
            "float/f32_min_max",
            "float/f16x2_arithmetic",
            "float/bf16x2_arithmetic",
            "atomic/global_f64",
            "convert/f16_to_wider",
            "convert/bf16_to_wider",
            "convert/f64_to_narrower",
        ],
    },
    Settled {
        name: "nan-fill",
        holds: "The NaN fill of a tensor map is 0x7ff7 in each 16 bits.",
        cases: &[
            "out_of_bounds/fill_nan_f16",
            "out_of_bounds/fill_nan_bf16",
            "out_of_bounds/fill_nan_f32",
            "out_of_bounds/fill_nan_f64",
        ],
    },
    Settled {
        name: "narrow-rows",
        holds: "Rows of a box that are narrower than the swizzle pattern lie a whole row of the pattern apart.",
        cases: &[
            "swizzle/narrow_16_in_b32",
            "swizzle/narrow_16_in_b128",
            "swizzle/narrow_32_in_b64",
            "swizzle/narrow_64_in_b128",
            "store/narrow_64_in_b128",
        ],
    },
    Settled {
        name: "negative-coordinates",
        holds: "A load may begin at negative coordinates; a store from there is an illegal instruction.",
        cases: &["out_of_bounds/negative_coordinates", "store/negative_coordinates"],
    },
    Settled {
        name: "register-pool",
        holds: "setmaxnreg.inc takes from what the CTA's own warps have given back, and waits for ever where that is too little. With neither .maxnreg nor .minnctapersm the assembler leaves setmaxnreg out.",
        cases: &["registers/given_back", "registers/too_few", "registers/too_few_of_maxnreg", "registers/no_count"],
    },
    Settled {
        name: "subnormal-sums",
        holds: "Atomic sums of FP32 flush subnormals in global memory and keep them in shared memory; a tensor reduction flushes those of F32_FTZ and keeps those of FP32.",
        cases: &["atomic/global_f32", "atomic/shared_f32", "reduce/add_f32", "reduce/add_f32_ftz"],
    },
    Settled {
        name: "swizzle-of-addresses",
        holds: "A swizzle permutes by the bits of the shared address, not of the place in the box.",
        cases: &[
            "swizzle/b128_at_128",
            "swizzle/b128_at_384",
            "swizzle/b128_at_896",
            "swizzle/b64_at_128",
            "swizzle/b64_at_256",
            "swizzle/b32_at_128",
            "store/b128_at_384",
        ],
    },
    Settled {
        name: "wgmma-fp8-numerics",
        holds: "wgmma with FP8 operands cuts terms off 13 bits below the largest exponent, and leaves 13 bits of an FP32 result's fraction; an FP16 result is rounded to nearest.",
        cases: &[
            "wgmma_fp8/near_e4m3_e4m3_f32",
            "wgmma_fp8/wide_e5m2_e4m3_f32",
            "wgmma_fp8/wide_e4m3_e5m2_f16",
            "wgmma_fp8/cancellation_e5m2_e5m2_f16",
            "wgmma_fp8/accumulator_alone_e4m3_e4m3_f32",
            "wgmma_fp8/least_numbers_e4m3_e4m3_f32",
            "wgmma_fp8/one_product_e5m2_e5m2_f32",
            "wgmma_fp8/chain_e4m3_e4m3_f32",
        ],
    },
    Settled {
        name: "wgmma-integers",
        holds: "wgmma and mma.sync of 8-bit integers add without error; D goes round, or with .satfinite ends at the largest and the smallest number after each MMA.",
        cases: &[
            "wgmma_i8/wrap_s8_u8",
            "wgmma_i8/satfinite_s8_s8",
            "wgmma_i8/satfinite_u8_u8",
            "warp_mma/m16n8k32_satfinite_u8_s8",
        ],
    },
    Settled {
        name: "wgmma-numerics",
        holds: "wgmma gives the bits of Numerics::Exact: 25 bits below the largest exponent, cut off towards zero, in FP16 and BF16; a product that is zero has exponent -126.",
        cases: &[
            "wgmma_numerics/near_f16_f32",
            "wgmma_numerics/wide_bf16_f32",
            "wgmma_numerics/cancellation_f16_f16",
            "wgmma_numerics/chain_bf16_f32",
            "wgmma_numerics/subnormal_bf16_f32",
            "wgmma_numerics/without_d_bf16_f32",
        ],
    },
    Settled {
        name: "wgmma-tf32-numerics",
        holds: "wgmma and mma.sync with TF32 operands give the bits of Numerics::Exact with 25 bits; the low 13 bits of an element are cut off, also those of a NaN.",
        cases: &[
            "wgmma_tf32/near",
            "wgmma_tf32/wide",
            "wgmma_tf32/cancellation",
            "wgmma_tf32/special",
            "wgmma_tf32/subnormal",
            "warp_mma/m16n8k4_tf32_f32",
            "warp_mma/m16n8k8_tf32_f32",
        ],
    },
    Settled {
        name: "whole-warp-copies",
        holds: "A copy that several lanes execute is made once for each: a reduction adds so many times, a load brings its bytes so many times.",
        cases: &[
            "whole_warp/bulk_reduce",
            "whole_warp/tensor_load_32",
            "whole_warp/tensor_reduce",
            "whole_warp/tensor_reduce_half",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_every_entry_has_cases() {
        for pair in SETTLED.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands before {}", pair[0].name, pair[1].name);
        }
        for settled in SETTLED {
            assert!(settled.holds.ends_with('.') && !settled.cases.is_empty(), "{}", settled.name);
        }
    }
}
