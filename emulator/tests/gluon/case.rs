//! The kernels of this folder: their text, and their launch at the size they were compiled for or at another.

#![allow(dead_code)]

use emulator::{Buffer, Content, Distribution, Element, Launch, NumberType, Output, Param, Random, Swizzle, TensorMap};
use half::{bf16, f16};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where the kernels lie: in the emulator's crate, also for a crate below it.
fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let known = here.ancestors().map(|folder| folder.join("tests/gluon")).find(|folder| folder.is_dir());
    known.unwrap_or_else(|| panic!("there is no tests/gluon above {}", here.display()))
}

/// A kernel, and how to launch it.
pub struct Case {
    pub text: String,
    pub launch: Launch,
    /// M, N, K.
    pub size: [usize; 3],
    pub bf: bool,
}

impl Case {
    /// An element of A, B or D.
    pub fn bits(&self, value: f32) -> u16 {
        if self.bf { bf16::from_f32(value).to_bits() } else { f16::from_f32(value).to_bits() }
    }

    /// Its value.
    pub fn value(&self, bits: u16) -> f32 {
        if self.bf { bf16::from_bits(bits).to_f32() } else { f16::from_bits(bits).to_f32() }
    }

    /// Sets A (buffer 0) or B (buffer 1).
    pub fn fill(&mut self, buffer: usize, elements: impl Iterator<Item = u16>) {
        self.launch.buffers[buffer].content = Content::Bytes(elements.flat_map(u16::to_le_bytes).collect());
    }
}

fn numbers<T: TryFrom<u64>>(value: &Value) -> Vec<T> {
    let list = value.as_array().expect("a list").iter();
    list.map(|v| T::try_from(v.as_u64().expect("a number")).ok().expect("in range")).collect()
}

fn dims(value: &Value) -> [u32; 3] {
    numbers(value).try_into().expect("three")
}

/// All of them.
pub fn names() -> Vec<String> {
    let folder = folder();
    let files =
        std::fs::read_dir(folder).expect("the folder").filter_map(|file| file.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = files.filter_map(|file| Some(file.strip_suffix(".ptx")?.to_string())).collect();
    names.sort();
    names
}

/// The launch of a kernel at its own size as a launch file says it: A and B hold small integers, D is written to `NAME.d.bin`.
pub fn launch_file(name: &str) -> Launch {
    let Case { mut launch, size: [m, n, k], bf, .. } = case(name, None);
    for (buffer, rows) in [m, n].into_iter().enumerate() {
        launch.buffers[buffer].content = Content::Random(Random {
            seed: buffer as u64 + 1,
            count: (rows * k) as u64,
            number: if bf { NumberType::Bf16 } else { NumberType::F16 },
            distribution: Distribution::Integers { low: -2, high: 2 },
        });
    }
    launch.outputs = vec![Output { buffer: 2, file: format!("{name}.d.bin") }];
    launch
}

/// A kernel at its own size, or at another one, if it takes its sizes as parameters. A and B are zero.
pub fn case(name: &str, other: Option<[usize; 3]>) -> Case {
    let folder = folder();
    let read = |end: &str| std::fs::read_to_string(folder.join(format!("{name}.{end}"))).expect(name);
    let j: Value = serde_json::from_str(&read("json")).expect(name);
    let number = |key: &str| j[key].as_u64().expect(key) as usize;
    let size = other.unwrap_or([number("M"), number("N"), number("K")]);
    let bf = j["dtype"] == "bf16";
    let [m, n, k] = size;
    // Rows and columns of A, B and D.
    let shapes = [[m, k], [n, k], [m, n]];
    let index = |name: &Value| ["A", "B", "D"].iter().position(|b| name == b).expect("A, B or D");
    // A number that a parameter hands over: at another size, what its meaning says.
    let value = |p: &Value| match p["meaning"].as_str().and_then(|meaning| meaning.split_once("_desc.")) {
        Some((which, field)) if other.is_some() => {
            let [rows, columns] = shapes[index(&Value::from(which.to_uppercase()))];
            match field {
                "shape[0]" => rows as i64,
                "shape[1]" | "strides[0], in elements" => columns as i64,
                _ => 1,
            }
        }
        _ => p["value"].as_i64().expect("a value"),
    };
    let params = j["params"].as_array().expect("params").iter().map(|p| match p["kind"].as_str() {
        Some("pointer") => Param::Pointer { buffer: index(&p["buffer"]), offset: 0 },
        Some("null_pointer") => Param::U64(0),
        Some("i32") => Param::U32(value(p) as u32),
        Some("i64") => Param::U64(value(p) as u64),
        Some("tensor_map") => {
            let t = &j["tensor_maps"][p["tensor_map"].as_u64().expect("an index") as usize];
            let buffer = index(&t["buffer"]);
            let [rows, columns] = shapes[buffer].map(|n| n as u64);
            let map = TensorMap {
                address: 0,
                element: if bf { Element::Bf16 } else { Element::F16 },
                dims: if other.is_some() { vec![columns, rows] } else { numbers(&t["global_dims"]) },
                strides: if other.is_some() { vec![2 * columns] } else { numbers(&t["global_strides_bytes"]) },
                box_dims: numbers(&t["box_dims"]),
                element_strides: numbers(&t["element_strides"]),
                swizzle: match t["swizzle"].as_str() {
                    Some("128B") => Swizzle::B128,
                    Some("64B") => Swizzle::B64,
                    Some("32B") => Swizzle::B32,
                    _ => Swizzle::None,
                },
                fill_nan: false,
            };
            Param::TensorMap { buffer, map }
        }
        other => panic!("{name}: parameter kind {other:?}"),
    });
    let params = params.collect();
    let buffer = |name: &str, [rows, columns]: [usize; 2]| Buffer {
        name: name.into(),
        content: if name == "D" {
            Content::Undefined { bytes: (rows * columns * 2) as u64 }
        } else {
            Content::Fill { bytes: (rows * columns * 2) as u64, value: 0 }
        },
        row_bytes: Some(2 * columns as u32),
        element_bytes: Some(2),
    };
    let launch = Launch {
        entry: j["entry"].as_str().expect("entry").into(),
        grid: dims(&j["grid"]),
        cluster: dims(&j["cluster"]),
        block: dims(&j["block"]),
        dynamic_shared: number("dynamic_shared_bytes") as u32,
        params,
        buffers: vec![buffer("A", shapes[0]), buffer("B", shapes[1]), buffer("D", shapes[2])],
        ..Default::default()
    };
    Case { text: read("ptx"), launch, size, bf }
}
