//! `docs/launch.schema.json` and the type `emulator::Launch` describe the same files.

use emulator::Launch;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;

fn file(path: &str) -> Value {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).expect(&path)).expect(&path)
}

static SCHEMA: LazyLock<Value> = LazyLock::new(|| file("../../docs/launch.schema.json"));

/// Checks a value against the keywords that the schema uses, and notes each property that it meets.
struct Schema {
    root: &'static Value,
    met: BTreeSet<String>,
}

impl Schema {
    /// `at` is the JSON pointer of the part of the schema.
    fn check(&mut self, at: &str, value: &Value, path: &str) -> Result<(), String> {
        let schema = self.root.pointer(at).and_then(Value::as_object).expect(at);
        let fail = |what: &str| Err(format!("{path}: {what}: {value}"));
        for (keyword, wanted) in schema {
            match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" | "required" | "additionalProperties" => {}
                "$ref" => {
                    let target = wanted.as_str().and_then(|r| r.strip_prefix('#')).expect("a local reference");
                    self.check(target, value, path)?;
                }
                "type" => {
                    let fits = match wanted.as_str().expect("a type") {
                        "object" => value.is_object(),
                        "array" => value.is_array(),
                        "string" => value.is_string(),
                        "boolean" => value.is_boolean(),
                        "null" => value.is_null(),
                        "number" => value.is_number(),
                        "integer" => value.is_u64() || value.is_i64(),
                        other => panic!("type {other}"),
                    };
                    if !fits {
                        return fail(&format!("is not of type {wanted}"));
                    }
                }
                "minimum" | "maximum" => {
                    let (bound, found) = (wanted.as_f64().expect("a bound"), value.as_f64().unwrap_or(f64::NAN));
                    if if keyword == "minimum" { found < bound } else { found > bound } {
                        return fail(&format!("{keyword} {bound}"));
                    }
                }
                "minItems" | "maxItems" if !value.is_array() => {}
                "minItems" | "maxItems" => {
                    let (bound, found) =
                        (wanted.as_u64().expect("a bound"), value.as_array().map_or(0, Vec::len) as u64);
                    if if keyword == "minItems" { found < bound } else { found > bound } {
                        return fail(&format!("{keyword} {bound}"));
                    }
                }
                // The only pattern there is: pairs of hexadecimal digits.
                "pattern" => {
                    let digits: Vec<char> =
                        value.as_str().unwrap_or("").chars().filter(|c| !c.is_whitespace()).collect();
                    if !digits.len().is_multiple_of(2) || !digits.iter().all(char::is_ascii_hexdigit) {
                        return fail("does not match the pattern");
                    }
                }
                "enum" => {
                    let list = wanted.as_array().expect("a list");
                    if !list.contains(value) {
                        return fail(&format!("is none of {wanted}"));
                    }
                }
                "items" => {
                    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(&format!("{at}/items"), item, &format!("{path}[{n}]"))?;
                    }
                }
                "oneOf" => {
                    let (before, mut met) = (self.met.clone(), Vec::new());
                    let mut why = Vec::new();
                    for n in 0..wanted.as_array().expect("a list").len() {
                        self.met.clone_from(&before);
                        match self.check(&format!("{at}/oneOf/{n}"), value, path) {
                            Ok(()) => met.push(self.met.clone()),
                            Err(error) => why.push(error),
                        }
                    }
                    let [met] =
                        <[_; 1]>::try_from(met).map_err(|m| format!("{path}: {} of oneOf: {why:?}", m.len()))?;
                    self.met = met;
                }
                "properties" => {
                    for (name, inner) in value.as_object().into_iter().flatten() {
                        if wanted[name].is_null() {
                            return fail(&format!("has the unknown field {name}"));
                        }
                        let inner_at = format!("{at}/properties/{name}");
                        self.check(&inner_at, inner, &format!("{path}.{name}"))?;
                        self.met.insert(inner_at);
                    }
                    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                        if value.get(name).is_none() {
                            return fail(&format!("has no {name}"));
                        }
                    }
                    assert_eq!(schema["additionalProperties"], false, "{path}");
                }
                other => panic!("keyword {other}"),
            }
        }
        Ok(())
    }
}

/// The parts of the schema that a launch file meets.
fn validate(value: &Value) -> Result<BTreeSet<String>, String> {
    let mut schema = Schema { root: &SCHEMA, met: BTreeSet::new() };
    schema.check("", value, "launch")?;
    Ok(schema.met)
}

/// The JSON pointers of all properties in the schema.
fn properties(schema: &Value, at: String, found: &mut BTreeSet<String>) {
    let inner: Vec<(String, &Value)> = match schema {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect(),
        _ => return,
    };
    for (key, value) in inner {
        let here = format!("{at}/{key}");
        if at.ends_with("/properties") {
            found.insert(here.clone());
        }
        properties(value, here, found);
    }
}

#[test]
fn launch_files_of_the_tree_follow_the_schema() {
    for path in ["../examples/saxpy/launch.json", "tests/files/exchange.json", "tests/files/recorded.json"] {
        let value = file(path);
        validate(&value).unwrap_or_else(|e| panic!("{path}: {e}"));
        serde_json::from_value::<Launch>(value).unwrap_or_else(|e| panic!("{path}: {e}"));
    }
}

/// `everything.json` has every field of the schema; the type reads all of them and writes what the schema allows, and
/// the same again.
#[test]
fn every_field_appears_in_schema_and_type() {
    let everything = file("tests/files/everything.json");
    let met = validate(&everything).unwrap();
    let mut all = BTreeSet::new();
    properties(&SCHEMA, String::new(), &mut all);
    assert_eq!(all.difference(&met).collect::<Vec<_>>(), Vec::<&String>::new(), "not in everything.json");

    let launch: Launch = serde_json::from_value(everything).unwrap();
    let written = serde_json::to_value(&launch).unwrap();
    let written_met = validate(&written).unwrap();
    // Other names of the signed types are read, not written.
    let missing: Vec<&String> = met
        .difference(&written_met)
        .filter(|at| !["s8", "s16", "s32", "s64"].iter().any(|s| at.ends_with(s)))
        .collect();
    assert_eq!(missing, Vec::<&String>::new(), "read, and not written");
    let again: Launch = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap(), written);
}

/// All places in a value, as JSON pointers.
fn places(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| places(inner, format!("{at}/{key}"), found)),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, inner)| places(inner, format!("{at}/{n}"), found)),
        _ => {}
    }
    found.push(at);
}

/// Each field left out, replaced, or with an unknown one beside it: schema and type must agree on whether that is a
/// launch file. (What only a run can judge, such as ranks and sizes of blocks, is replaced by nothing that differs there.)
#[test]
fn schema_and_type_refuse_the_same() {
    let everything = file("tests/files/everything.json");
    let mut all = Vec::new();
    places(&everything, String::new(), &mut all);
    let (mut refused, mut taken) = (0, 0);
    for at in &all {
        let mut changed = Vec::new();
        for replacement in
            [json!(null), json!("x"), json!(true), json!(-1), json!(1u64 << 40), json!({}), json!({"x": 1})]
        {
            let mut value = everything.clone();
            *value.pointer_mut(at).unwrap() = replacement;
            changed.push(value);
        }
        if let Some((parent, key)) = at.rsplit_once('/')
            && let Some(Value::Object(map)) = everything.clone().pointer_mut(parent)
        {
            map.remove(key);
            let mut value = everything.clone();
            *value.pointer_mut(parent).unwrap() = Value::Object(map.clone());
            changed.push(value);
        }
        if let Some(Value::Object(_)) = everything.pointer(at) {
            let mut value = everything.clone();
            value.pointer_mut(at).unwrap().as_object_mut().unwrap().insert("unknown".into(), json!(1));
            changed.push(value);
        }
        for value in changed {
            let schema = validate(&value).map(|_| ());
            let serde = serde_json::from_value::<Launch>(value.clone());
            let here = value.pointer(at);
            // A schema is stricter where a run would refuse: these bounds are of the GPU, not of the file.
            let bound = schema.as_ref().is_err_and(|e| e.contains("minimum") || e.contains("maximum"));
            assert!(
                schema.is_ok() == serde.is_ok() || bound && serde.is_ok(),
                "{at} = {here:?}: schema {schema:?}, type {:?}",
                serde.err()
            );
            if schema.is_ok() { taken += 1 } else { refused += 1 }
        }
    }
    assert!(refused > 500 && taken > 50, "{refused} refused, {taken} taken");
}
