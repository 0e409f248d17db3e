//! The kernels of this folder: their text, and their launch at the size they were compiled for or at another.

#![allow(dead_code)]

pub mod formats;

use emulator::{Buffer, Content, Distribution, Element, Launch, NumberType, Output, Param, Random, Swizzle, TensorMap};
use formats::Format;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where the kernels lie: in the emulator's crate, also for a crate below it.
fn folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let known = here.ancestors().map(|folder| folder.join("tests/gluon")).find(|folder| folder.is_dir());
    known.unwrap_or_else(|| panic!("there is no tests/gluon above {}", here.display()))
}

/// A buffer of a kernel: what it holds.
#[derive(Clone, Debug)]
pub struct Operand {
    pub name: String,
    /// `input`, `scale` (factors of another input), `output`, or what else the kernel needs.
    pub role: String,
    pub format: Format,
    /// Elements in each dimension, the outermost first.
    pub shape: Vec<usize>,
    values: Option<Vec<u32>>,
    /// It holds zeros before the launch.
    zero: bool,
}

impl Operand {
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    fn bytes(&self) -> u64 {
        (self.elements() * self.format.bits() / 8) as u64
    }

    fn buffer(&self) -> Buffer {
        let row = self.shape.last().map_or(0, |columns| columns * self.format.bits() / 8);
        Buffer {
            name: self.name.clone(),
            content: match &self.values {
                Some(values) => Content::Bytes(self.format.pack(values.iter().copied()).into()),
                None if self.zero || ["input", "scale", "row"].contains(&self.role.as_str()) => {
                    Content::Fill { bytes: self.bytes(), value: 0 }
                }
                None => Content::Undefined { bytes: self.bytes() },
            },
            row_bytes: Some(row as u32),
            element_bytes: Some(self.format.bits().div_ceil(8) as u32),
        }
    }
}

/// A kernel, and how to launch it.
pub struct Case {
    pub text: String,
    pub launch: Launch,
    /// M, N, K.
    pub size: [usize; 3],
    /// What its buffers hold, in their order.
    pub operands: Vec<Operand>,
    /// Elements of a row that one scale factor belongs to.
    pub scale_block: Option<usize>,
}

impl Case {
    /// An element of A, B or D, if these have 16 bits.
    pub fn bits(&self, value: f32) -> u16 {
        let format = self.operands[0].format;
        assert_eq!(format.bits(), 16, "{format:?}");
        format.nearest(f64::from(value)) as u16
    }

    /// Its value.
    pub fn value(&self, bits: u16) -> f32 {
        self.operands[0].format.value(u32::from(bits)) as f32
    }

    /// The buffer of this name.
    pub fn buffer(&self, name: &str) -> usize {
        self.operands.iter().position(|operand| operand.name == name).unwrap_or_else(|| panic!("no buffer {name}"))
    }

    /// The first buffer that the kernel writes its result to.
    pub fn output(&self) -> usize {
        self.operands.iter().position(|operand| operand.role == "output").expect("an output")
    }

    /// Sets A (buffer 0) or B (buffer 1).
    pub fn fill(&mut self, buffer: usize, elements: impl Iterator<Item = u16>) {
        self.set(buffer, elements.map(u32::from));
    }

    /// Sets a buffer's elements, as codes of its format.
    pub fn set(&mut self, buffer: usize, codes: impl IntoIterator<Item = u32>) {
        let operand = &self.operands[buffer];
        let bytes = operand.format.pack(codes);
        assert_eq!(bytes.len() as u64, operand.bytes(), "{}", operand.name);
        self.launch.buffers[buffer].content = Content::Bytes(bytes.into());
    }

    /// Small integers in all inputs, and scale factors of 1 and 2.
    pub fn fill_with_small_integers(&mut self, seed: u64) {
        for buffer in 0..self.operands.len() {
            let operand = self.operands[buffer].clone();
            let least = match operand.role.as_str() {
                "input" => -2,
                "scale" => 1,
                _ => continue,
            };
            let mut state = seed + buffer as u64;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                least + ((state >> 40) % (3 - least) as u64) as i64
            };
            self.set(buffer, (0..operand.elements()).map(|_| operand.format.nearest(next() as f64)));
        }
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

/// The launch of a kernel at its own size as a launch file says it: inputs hold small integers, an output D is written to `NAME.d.bin`.
pub fn launch_file(name: &str) -> Launch {
    let mut case = case(name, None);
    case.fill_with_small_integers(1);
    let Case { mut launch, operands, .. } = case;
    for (buffer, operand) in operands.iter().enumerate() {
        let number = match operand.format {
            Format::F16 => NumberType::F16,
            Format::Bf16 => NumberType::Bf16,
            Format::F32 => NumberType::F32,
            _ => continue,
        };
        if operand.role == "input" {
            launch.buffers[buffer].content = Content::Random(Random {
                seed: buffer as u64 + 1,
                count: operand.elements() as u64,
                number,
                distribution: Distribution::Integers { low: -2, high: 2 },
            });
        }
    }
    let outputs = operands.iter().enumerate().filter(|(_, operand)| operand.role == "output");
    let file = |buffer, name_of: &str| Output { buffer, file: format!("{name}.{}.bin", name_of.to_lowercase()) };
    launch.outputs = outputs.map(|(buffer, operand)| file(buffer, &operand.name)).collect();
    launch
}

/// A kernel at its own size, or at another one, if it takes its sizes as parameters and its elements have 16 bits. Its inputs are zero.
pub fn case(name: &str, other: Option<[usize; 3]>) -> Case {
    let folder = folder();
    let read = |end: &str| std::fs::read_to_string(folder.join(format!("{name}.{end}"))).expect(name);
    let j: Value = serde_json::from_str(&read("json")).expect(name);
    let number = |key: &str| j[key].as_u64().expect(key) as usize;
    let size = other.unwrap_or([number("M"), number("N"), number("K")]);
    let [m, n, k] = size;
    // Rows and columns of A, B and D.
    let shapes = [[m, k], [n, k], [m, n]];
    let operand = |(name, b): (&String, &Value)| {
        let format = b["dtype"].as_str().and_then(Format::named);
        let format = format.unwrap_or_else(|| panic!("{name}: the format {} is not known here", b["dtype"]));
        let mut shape: Vec<usize> = numbers(&b["shape"]);
        if let Some(last) = shape.last_mut() {
            // Two elements in a byte.
            *last *= 8 / format.bits().min(8);
        }
        let values = b.get("values").map(numbers);
        let zero = b["zero"] == true;
        Operand { name: name.clone(), role: b["role"].as_str().expect("a role").into(), format, shape, values, zero }
    };
    let mut operands: Vec<Operand> = j["buffers"].as_object().expect("buffers").iter().map(operand).collect();
    if other.is_some() {
        assert!(operands.iter().map(|o| o.name.as_str()).eq(["A", "B", "D"]), "{name}: sizes of A, B and D only");
        operands.iter_mut().zip(shapes).for_each(|(operand, shape)| operand.shape = shape.to_vec());
    }
    let index = |name: &Value| operands.iter().position(|o| name == o.name.as_str()).expect("a buffer");
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
        Some("f32") => Param::F32(p["value"].as_f64().expect("a value") as f32),
        Some("tensor_map") => {
            let t = &j["tensor_maps"][p["tensor_map"].as_u64().expect("an index") as usize];
            let buffer = index(&t["buffer"]);
            let (rows, columns) = match other {
                Some(_) => (shapes[buffer][0] as u64, shapes[buffer][1] as u64),
                None => (0, 0),
            };
            let map = TensorMap {
                address: 0,
                element: match t["cu_data_type"].as_str() {
                    Some("UINT8") => Element::U8,
                    Some("INT32") => Element::S32,
                    Some("FLOAT16") => Element::F16,
                    Some("BFLOAT16") => Element::Bf16,
                    Some("FLOAT32") => Element::F32,
                    Some("16U4_ALIGN16B") => Element::U4Align16,
                    other => panic!("{name}: type of elements {other:?}"),
                },
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
    let launch = Launch {
        entry: j["entry"].as_str().expect("entry").into(),
        grid: dims(&j["grid"]),
        cluster: dims(&j["cluster"]),
        block: dims(&j["block"]),
        dynamic_shared: number("dynamic_shared_bytes") as u32,
        params,
        buffers: operands.iter().map(Operand::buffer).collect(),
        ..Default::default()
    };
    let scale_block = j["scale_block"].as_u64().map(|block| block as usize);
    Case { text: read("ptx"), launch, size, operands, scale_block }
}
