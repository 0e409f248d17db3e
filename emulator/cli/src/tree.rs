//! A JSON text as a tree whose values know where they stand, in the order of the text.

use crate::locate::{skip, space};
use std::ops::Range;

/// Values within values, at most: as many as serde_json reads.
pub const DEEPEST: usize = 128;

/// The bracket that opens one level more than is read, wherever it stands.
pub fn too_deep(text: &str) -> Option<Range<usize>> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let n = text.bytes().position(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = usize::saturating_sub(depth, 1),
            _ => {}
        }
        depth > DEEPEST
    })?;
    Some(n..n + 1)
}

/// A value.
#[derive(Debug)]
pub struct Node {
    /// Its bytes in the text.
    pub range: Range<usize>,
    pub value: Value,
}

#[derive(Debug)]
pub enum Value {
    Null,
    Bool,
    /// As it is written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

/// A field of an object.
#[derive(Debug)]
pub struct Member {
    pub name: String,
    /// Where the name stands.
    pub at: Range<usize>,
    pub node: Node,
}

impl Node {
    /// The tree of a text; `None` if it is no JSON.
    pub fn read(text: &str) -> Option<Node> {
        serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
        Node::value(text, space(text.as_bytes(), 0), 0)
    }

    fn value(text: &str, at: usize, depth: usize) -> Option<Node> {
        let bytes = text.as_bytes();
        let range = at..skip(bytes, at);
        let written = text.get(range.clone())?;
        let value = match bytes.get(at)? {
            // What reads it refuses what lies so deep, and nothing asks for it.
            b'{' | b'[' if depth > DEEPEST => Value::List(Vec::new()),
            b'{' => Value::Object(Node::members(text, at + 1, depth)?),
            b'[' => Value::List(Node::items(text, at + 1, depth)?),
            b'"' => Value::Text(serde_json::from_str(written).ok()?),
            b't' | b'f' => Value::Bool,
            b'n' => Value::Null,
            _ => Value::Number(written.into()),
        };
        Some(Node { range, value })
    }

    fn items(text: &str, from: usize, depth: usize) -> Option<Vec<Node>> {
        let (bytes, mut list) = (text.as_bytes(), Vec::new());
        let mut at = space(bytes, from);
        while *bytes.get(at)? != b']' {
            let node = Node::value(text, at, depth + 1)?;
            at = behind(bytes, node.range.end);
            list.push(node);
        }
        Some(list)
    }

    fn members(text: &str, from: usize, depth: usize) -> Option<Vec<Member>> {
        let (bytes, mut list) = (text.as_bytes(), Vec::new());
        let mut at = space(bytes, from);
        while *bytes.get(at)? != b'}' {
            let name = at..skip(bytes, at);
            let node = Node::value(text, space(bytes, space(bytes, name.end) + 1), depth + 1)?;
            at = behind(bytes, node.range.end);
            list.push(Member { name: serde_json::from_str(text.get(name.clone())?).ok()?, at: name, node });
        }
        Some(list)
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.members_or_none().iter().find(|member| member.name == name).map(|member| &member.node)
    }

    /// The fields, of an object.
    pub fn members_or_none(&self) -> &[Member] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// The values, of a list.
    pub fn items_or_none(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// What it says, if it is a text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, as it is written, if that is a number.
    pub fn number(&self) -> Option<&str> {
        match &self.value {
            Value::Number(text) => Some(text),
            _ => None,
        }
    }
}

/// The next value of a list, or its end.
fn behind(bytes: &[u8], end: usize) -> usize {
    let at = space(bytes, end);
    if bytes.get(at) == Some(&b',') { space(bytes, at + 1) } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_values_where_they_stand() {
        let text = r#" { "a\"]" : [1, {"x": "}"}, -2.5e3 ], "list":[ ] , "b":true,"c": null} "#;
        let tree = Node::read(text).expect("JSON");
        let names: Vec<&str> = tree.members_or_none().iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["a\"]", "list", "b", "c"]);
        let first = tree.get("a\"]").expect("the list").items_or_none();
        assert_eq!(first[2].number(), Some("-2.5e3"));
        assert_eq!(&text[first[1].range.clone()], r#"{"x": "}"}"#);
        assert_eq!(first[1].get("x").and_then(Node::text), Some("}"));
        assert!(Node::read("{\"a\": }").is_none());
        assert!(Node::read(&format!("{}{}", "[".repeat(9999), "]".repeat(9999))).is_some());
    }
}
