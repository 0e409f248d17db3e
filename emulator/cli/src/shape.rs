//! Whether the values of a launch file are of the shape that `docs/launch.schema.json` gives them: what is none, where it stands, and what is
//! allowed there.

use crate::tree::{Member, Node, Value};
use std::ops::Range;
use std::sync::LazyLock;

/// What is wrong with a value.
#[derive(Debug)]
pub struct Wrong {
    pub title: String,
    pub range: Range<usize>,
    pub way_out: String,
}

/// A test holds it against the type that the file is read into.
static SCHEMA: LazyLock<Option<Node>> = LazyLock::new(|| Node::read(include_str!("../../../docs/launch.schema.json")));

/// Characters of a value that a message quotes.
const QUOTED: usize = 40;

/// All that is of another shape, in the order of the text.
pub fn wrong(text: &str, file: &Node) -> Vec<Wrong> {
    let Some(schema) = &*SCHEMA else { return Vec::new() };
    let mut check = Check { text, schema, wrong: Vec::new() };
    check.value(schema, file, "");
    check.wrong.sort_by_key(|wrong| wrong.range.start);
    check.wrong
}

/// The kinds that one field names, with the shapes of their values, and those that are a name alone.
type Kinds<'a> = (Vec<(&'a str, &'a Node)>, Vec<&'a str>);

struct Check<'a> {
    text: &'a str,
    schema: &'a Node,
    wrong: Vec<Wrong>,
}

impl<'a> Check<'a> {
    fn value(&mut self, wanted: &'a Node, found: &Node, path: &str) {
        let wanted = self.resolved(wanted);
        if let Some(choices) = wanted.get("oneOf") {
            return self.choice(&self.choices(choices), found, path);
        }
        if !is_of_type(wanted, found) {
            return self.cannot_be(&[wanted], found, path);
        }
        match wanted.get("type").and_then(Node::text) {
            Some("object") => self.object(wanted, found, path),
            Some("array") => self.list(wanted, found, path),
            Some("integer" | "number") if !is_within(wanted, found) => self.cannot_be(&[wanted], found, path),
            Some("string") if wanted.get("pattern").is_some() && !is_hexadecimal(found) => {
                self.cannot_be(&[wanted], found, path);
            }
            None if !is_one_of(wanted, found) => self.cannot_be(&[wanted], found, path),
            _ => {}
        }
    }

    /// One of several: the kinds that one field names, or values of several types.
    fn choice(&mut self, choices: &[&'a Node], found: &Node, path: &str) {
        let Some((kinds, names)) = self.kinds(choices) else {
            return match choices.iter().find(|choice| is_of_type(choice, found)) {
                Some(choice) => self.value(choice, found, path),
                None => self.cannot_be(choices, found, path),
            };
        };
        if found.text().is_some_and(|name| names.contains(&name)) {
            return;
        }
        let way_out = format!("Allowed here: {}.{}", of_kinds(&kinds, &names), example(path));
        let Value::Object(members) = &found.value else {
            let title = match found.text() {
                Some(name) if kinds.iter().any(|kind| kind.0 == name) => {
                    format!("{} cannot be `{name}` without a value", of(path))
                }
                _ => format!("{} cannot be {}", of(path), self.quoted(found)),
            };
            return self.wrong.push(Wrong { title, range: found.range.clone(), way_out });
        };
        match members.as_slice() {
            [member] => match kinds.iter().find(|kind| kind.0 == member.name) {
                Some((_, inner)) => self.value(inner, &member.node, &joined(path, &member.name)),
                None => {
                    let title = format!("{} cannot be `{}`", of(path), shortened(&member.name));
                    self.wrong.push(Wrong { title, range: member.at.clone(), way_out });
                }
            },
            [] => {
                let title = format!("{} does not name its kind", of(path));
                self.wrong.push(Wrong { title, range: found.range.clone(), way_out });
            }
            [_, second, ..] => {
                let title = format!("{} has more than one field", of(path));
                self.wrong.push(Wrong { title, range: second.at.clone(), way_out });
            }
        }
    }

    fn object(&mut self, wanted: &'a Node, found: &Node, path: &str) {
        let fields = wanted.get("properties").map_or(&[][..], Node::members_or_none);
        let members = found.members_or_none();
        for (n, member) in members.iter().enumerate() {
            let name = &member.name;
            if members[..n].iter().any(|before| before.name == *name) {
                let title = format!("{} has its field `{}` twice", of(path), shortened(name));
                self.wrong.push(Wrong { title, range: member.at.clone(), way_out: "Give each field once.".into() });
                continue;
            }
            match fields.iter().find(|field| field.name == *name) {
                Some(field) => self.value(&field.node, &member.node, &joined(path, name)),
                None => {
                    let place = if path.is_empty() { String::new() } else { format!(" in {}", of(path)) };
                    let title = format!("unknown field `{}`{place}", shortened(name));
                    let way_out = format!("Allowed here: {}.", names(fields));
                    self.wrong.push(Wrong { title, range: member.at.clone(), way_out });
                }
            }
        }
        let is_there = |name: &str| members.iter().any(|member| member.name == name);
        let lacks: Vec<&str> = texts(wanted.get("required")).into_iter().filter(|name| !is_there(name)).collect();
        // What is unknown may be meant for what lacks.
        let all_known = members.iter().all(|member| fields.iter().any(|field| field.name == member.name));
        if !lacks.is_empty() && all_known {
            let plural = if lacks.len() == 1 { "" } else { "s" };
            let title = format!("{} lacks its field{plural} {}", of(path), ticked(lacks.iter().copied()));
            let named = fields.iter().filter(|field| lacks.contains(&field.name.as_str()));
            let each: Vec<String> =
                named.map(|f| format!("`{}`, {}", f.name, self.allowed(&[self.resolved(&f.node)]))).collect();
            let way_out = format!("Give {}. It has fields of {}.", each.join("; "), names(fields));
            self.wrong.push(Wrong { title, range: found.range.clone(), way_out });
        }
    }

    fn list(&mut self, wanted: &'a Node, found: &Node, path: &str) {
        let items = found.items_or_none();
        let bound = |name| wanted.get(name).and_then(Node::number).and_then(|n| n.parse().ok());
        if bound("minItems").is_some_and(|least: usize| items.len() < least)
            || bound("maxItems").is_some_and(|most: usize| items.len() > most)
        {
            return self.is_not(format!("{} is a list of length {}", of(path), items.len()), &[wanted], found);
        }
        let Some(wanted) = wanted.get("items") else { return };
        for (n, item) in items.iter().enumerate() {
            self.value(wanted, item, &format!("{path}[{n}]"));
        }
    }

    fn cannot_be(&mut self, wanted: &[&'a Node], found: &Node, path: &str) {
        self.is_not(format!("{} cannot be {}", of(path), self.quoted(found)), wanted, found);
    }

    fn is_not(&mut self, title: String, wanted: &[&'a Node], found: &Node) {
        let is = match wanted {
            [one] => {
                one.get("description").and_then(Node::text).map_or(String::new(), |text| format!(" It is: {text}."))
            }
            _ => String::new(),
        };
        let way_out = format!("Allowed here: {}.{is}", self.allowed(wanted));
        self.wrong.push(Wrong { title, range: found.range.clone(), way_out });
    }

    /// The kinds that one field names, with their values, and those that are a name alone; `None` if these are other choices.
    fn kinds(&self, choices: &[&'a Node]) -> Option<Kinds<'a>> {
        let kinds: Vec<_> = choices.iter().filter_map(|choice| kind(choice)).collect();
        let names = choices.iter().flat_map(|choice| texts(choice.get("enum"))).collect();
        (!kinds.is_empty()).then_some((kinds, names))
    }

    fn choices(&self, of: &'a Node) -> Vec<&'a Node> {
        of.items_or_none().iter().map(|choice| self.resolved(choice)).collect()
    }

    /// What values these are, in words.
    fn allowed(&self, wanted: &[&'a Node]) -> String {
        let all: Vec<String> = wanted.iter().map(|wanted| self.allowed_one(wanted)).collect();
        all.join(", or ")
    }

    fn allowed_one(&self, wanted: &'a Node) -> String {
        if let Some(choices) = wanted.get("oneOf") {
            let choices = self.choices(choices);
            return match self.kinds(&choices) {
                Some((kinds, names)) => of_kinds(&kinds, &names),
                None => self.allowed(&choices),
            };
        }
        let (low, high) = (bound(wanted, "minimum"), bound(wanted, "maximum"));
        match wanted.get("type").and_then(Node::text) {
            None => ticked(texts(wanted.get("enum")).into_iter()),
            Some("integer") => format!("a whole number from {} to {}", low.unwrap_or("0"), high.unwrap_or("0")),
            Some("number") => match (low, high) {
                (Some(low), Some(high)) => format!("a number from {low} to {high}"),
                (Some(low), None) => format!("a number, {low} or more"),
                _ => format!("a number up to {:e}", f64::MAX),
            },
            Some("boolean") => "`true` or `false`".into(),
            Some("string") if wanted.get("pattern").is_some() => "a text of pairs of hexadecimal digits".into(),
            Some("string") => "a text in quotes".into(),
            Some("array") => {
                let (least, most) = (bound(wanted, "minItems"), bound(wanted, "maxItems"));
                let count = match (least, most) {
                    (Some(least), Some(most)) if least == most => format!("{most} "),
                    (least, Some(most)) => format!("{} to {most} ", least.unwrap_or("0")),
                    (Some(least), None) => format!("{least} or more "),
                    (None, None) => String::new(),
                };
                let items = wanted.get("items").map(|items| self.resolved(items));
                match items.filter(|items| items.get("type").and_then(Node::text) == Some("integer")) {
                    Some(whole) => match (bound(whole, "minimum"), bound(whole, "maximum")) {
                        (Some(low), Some(high)) => format!("a list of {count}whole numbers from {low} to {high}"),
                        _ => format!("a list of {count}whole numbers"),
                    },
                    None => format!("a list of {count}objects"),
                }
            }
            Some("object") => {
                format!(
                    "an object with fields of {}",
                    names(wanted.get("properties").map_or(&[], Node::members_or_none))
                )
            }
            Some(other) => format!("`{other}`"),
        }
    }

    /// A value in a message.
    fn quoted(&self, found: &Node) -> String {
        match &found.value {
            Value::Object(_) => "an object".into(),
            Value::List(_) => "a list".into(),
            Value::Text(text) => format!("\"{}\"", shortened(text)),
            _ => format!("`{}`", shortened(self.text.get(found.range.clone()).unwrap_or("?"))),
        }
    }

    /// What a part of the schema refers to.
    fn resolved(&self, part: &'a Node) -> &'a Node {
        let mut part = part;
        while let Some(target) = part.get("$ref").and_then(Node::text) {
            let mut steps = target.trim_start_matches("#/").split('/');
            match steps.try_fold(self.schema, |at, step| at.get(step)) {
                Some(target) => part = target,
                None => break,
            }
        }
        part
    }
}

/// The name of a kind, and its value: of an object with one field.
fn kind(choice: &Node) -> Option<(&str, &Node)> {
    match choice.get("properties")?.members_or_none() {
        [Member { name, node, .. }] if choice.get("oneOf").is_none() => Some((name, node)),
        _ => None,
    }
}

fn of_kinds(kinds: &[(&str, &Node)], names: &[&str]) -> String {
    let kinds = ticked(kinds.iter().map(|kind| kind.0));
    let alone =
        if names.is_empty() { String::new() } else { format!("; or a name alone: {}", ticked(names.iter().copied())) };
    format!("an object with one field, which names the kind: {kinds}{alone}")
}

fn is_of_type(wanted: &Node, found: &Node) -> bool {
    match (wanted.get("type").and_then(Node::text), &found.value) {
        (Some("integer"), Value::Number(written)) => written.parse::<i128>().is_ok() && written != "-0",
        (Some(name), value) => {
            let is = match value {
                Value::Null => "null",
                Value::Bool => "boolean",
                Value::Number(_) => "number",
                Value::Text(_) => "string",
                Value::List(_) => "array",
                Value::Object(_) => "object",
            };
            is == name
        }
        (None, value) => matches!(value, Value::Text(_)),
    }
}

fn bound<'a>(wanted: &'a Node, name: &str) -> Option<&'a str> {
    wanted.get(name).and_then(Node::number)
}

/// Whether a number can be held. That a count is one at least is the emulator's to tell.
fn is_within(wanted: &Node, found: &Node) -> bool {
    let Some(written) = found.number() else { return false };
    let (low, high) = (bound(wanted, "minimum"), bound(wanted, "maximum"));
    match written.parse::<i128>() {
        Ok(whole) if wanted.get("type").and_then(Node::text) == Some("integer") => {
            let bound = |bound: Option<&str>| bound.and_then(|bound| bound.parse::<i128>().ok());
            bound(low).is_none_or(|least| whole >= least.min(0)) && bound(high).is_none_or(|most| whole <= most)
        }
        _ => {
            let bound = |bound: Option<&str>| bound.and_then(|bound| bound.parse::<f64>().ok());
            let within = |real: &f64| {
                bound(low).is_none_or(|least| *real >= least) && bound(high).is_none_or(|most| *real <= most)
            };
            written.parse::<f64>().ok().filter(within).is_some_and(f64::is_finite)
        }
    }
}

fn is_hexadecimal(found: &Node) -> bool {
    let mut digits = found.text().unwrap_or("").chars().filter(|c| !c.is_whitespace() && *c != '_');
    digits.clone().count().is_multiple_of(2) && digits.all(|c| c.is_ascii_hexdigit())
}

fn is_one_of(wanted: &Node, found: &Node) -> bool {
    wanted.get("enum").is_none() || found.text().is_some_and(|text| texts(wanted.get("enum")).contains(&text))
}

fn texts(list: Option<&Node>) -> Vec<&str> {
    list.map_or(&[][..], Node::items_or_none).iter().filter_map(Node::text).collect()
}

fn names(fields: &[Member]) -> String {
    ticked(fields.iter().map(|field| field.name.as_str()))
}

fn ticked<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { shortened(name) } else { format!("{path}.{}", shortened(name)) }
}

fn of(path: &str) -> String {
    if path.is_empty() { "the launch file".into() } else { format!("`{path}`") }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// How the values of a field look that are of several kinds.
fn example(path: &str) -> &'static str {
    let last = path.rsplit('.').next().unwrap_or_default();
    match last.split('[').next().unwrap_or_default() {
        "params" | "value" => " As in `{ \"pointer\": { \"buffer\": 0 } }` or `{ \"u32\": 1000 }`.",
        "content" => " As in `{ \"fill\": { \"bytes\": 4096, \"value\": 0 } }`.",
        "distribution" => " As in `{ \"normal\": { \"mean\": 0, \"deviation\": 1 } }`.",
        _ => "",
    }
}
