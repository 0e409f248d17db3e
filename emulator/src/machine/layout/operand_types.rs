//! Whether an MMA takes its operands for the elements that were loaded: their type, their width, and how those of 4 bits lie.

use super::boxes::Laid;
use super::depths::Slice;
use crate::diagnostic::Severity;
use crate::launch::{Content, NumberType, Random};
use crate::machine::arithmetic::formats::Format;
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::counted;
use crate::tensor_map::Element;

impl Cluster<'_> {
    /// Boxes of one type that an MMA takes for two, or for another one, or boxes of FP8 numbers that it takes for others. Where the launch gives numbers of the
    /// type that the MMA takes them for, its maps are there to move bytes.
    pub fn check_types(&mut self, site: u32, slices: [Slice; 2], formats: [Format; 2]) {
        let [a, b] = slices;
        if a.element == Some(Element::U8) && b.element == Some(Element::U8) {
            return self.check_types_of_bytes(site, slices, formats);
        }
        let known = matches!(a.element, Some(Element::F16 | Element::Bf16));
        if !known || a.element != b.element {
            return;
        }
        let loaded = if a.element == Some(Element::F16) { "FP16" } else { "BF16" };
        let [of_a, of_b] = formats.map(Format::name);
        let alike = formats[0] == formats[1];
        if alike && (of_a == loaded || ![Format::F16, Format::Bf16].contains(&formats[0])) {
            return;
        }
        if alike && (self.depths.of_other_type.contains(&site) || self.are_given_as(slices, formats[0])) {
            return;
        }
        self.depths.of_other_type.push(site);
        let mut diagnostic = self.problem(
            "type-mismatch",
            site,
            match alike {
                true => format!("an MMA takes A and B for {of_a}, which are {loaded}"),
                false => format!("an MMA takes A for {of_a} and B for {of_b}, which are both {loaded}"),
            },
            "Bits 7 to 9 of the instruction descriptor are the type of A, bits 10 to 12 that of B (PTX ISA 9.7.16.4.2); nothing converts the \
             elements on their way.",
            format!("Give both the type {loaded}."),
        );
        diagnostic.severity = Severity::Finding;
        for (name, slice) in [("A", a), ("B", b)] {
            diagnostic.labels.push(self.label(slice.load, format!("{}: {loaded}", slice.brought(name))));
        }
        self.findings.add_alike(diagnostic);
    }

    /// Whether the launch gives random numbers of this type where one of these came from.
    fn are_given_as(&self, slices: [Slice; 2], format: Format) -> bool {
        let given = |slice: Slice| {
            let (n, _) = self.global.find(slice.line?.tensor.0, 1)?;
            match self.launch.buffers.get(n)?.content {
                Content::Random(Random { number: NumberType::F16, .. }) => Some(Format::F16),
                Content::Random(Random { number: NumberType::Bf16, .. }) => Some(Format::Bf16),
                _ => None,
            }
        };
        slices.into_iter().any(|slice| given(slice) == Some(format))
    }

    /// Tensor maps have no types of 8 bits but bytes. Which numbers those are, the launch says where it gives random ones.
    fn check_types_of_bytes(&mut self, site: u32, slices: [Slice; 2], formats: [Format; 2]) {
        let type_of = |content: &Content| match content {
            Content::Random(Random { number: NumberType::E4m3, .. }) => Some(Format::E4m3),
            Content::Random(Random { number: NumberType::E5m2, .. }) => Some(Format::E5m2),
            _ => None,
        };
        let some = self.launch.buffers.iter().any(|buffer| type_of(&buffer.content).is_some());
        if !some || self.depths.of_other_type.contains(&site) {
            return;
        }
        let given = slices.map(|slice| {
            let (n, _) = self.global.find(slice.line?.tensor.0, 1)?;
            let buffer = self.launch.buffers.get(n)?;
            Some((type_of(&buffer.content)?, &buffer.name))
        });
        let wrong = |n: usize| given[n].filter(|(format, _)| *format != formats[n]);
        let [a, b] = [0, 1].map(wrong);
        let Some((format, name)) = a.or(b) else { return };
        let of = |n: usize| format!("{} for {}", ["A", "B"][n], formats[n].name());
        let exchanged = a.zip(b).is_some_and(|(a, b)| (a.0, b.0) == (formats[1], formats[0]));
        let title = match (a, b) {
            (Some(a), Some(b)) => format!(
                "an MMA takes {} and {}, which are {} in `{}` and {} in `{}`",
                of(0),
                of(1),
                a.0.name(),
                a.1,
                b.0.name(),
                b.1
            ),
            _ => format!("an MMA takes {}, which is {} in `{name}`", of(usize::from(a.is_none())), format.name()),
        };
        let help = match (given[0], given[1]) {
            _ if exchanged => "Exchange the two fields.".to_string(),
            (Some(a), Some(b)) => format!("Give A the type {}, and B {}.", a.0.name(), b.0.name()),
            (of_a, _) => format!("Give {} the type {}.", if of_a.is_some() { "A" } else { "B" }, format.name()),
        };
        let mut diagnostic = self.problem(
            "type-mismatch",
            site,
            title,
            "Bits 7 to 9 of the instruction descriptor are the type of A, bits 10 to 12 that of B: 0 is E4M3, 1 is E5M2 (PTX ISA 9.7.16.4.2). A tensor map moves \
             bytes, and nothing converts the elements on their way; the launch says which numbers the buffers hold.",
            help,
        );
        diagnostic.severity = Severity::Finding;
        for (n, name) in ["A", "B"].into_iter().enumerate().filter(|(n, _)| [a, b][*n].is_some()) {
            diagnostic.labels.push(self.label(slices[n].load, slices[n].brought(name)));
        }
        self.depths.of_other_type.push(site);
        self.findings.add_alike(diagnostic);
    }

    /// An MMA reads elements padded that a map of elements of 4 bits has loaded side by side.
    fn packed_for_padded(&mut self, site: u32, names: &str, operands: Vec<(Laid, (Element, u32))>) {
        let mut diagnostic = self.problem(
            "type-mismatch",
            site,
            format!("an MMA takes elements of {names} for padded ones, which were loaded side by side"),
            "kind::f8f6f4 and kind::mxf8f6f4 read elements of 4 and 6 bits padded, sixteen of them in 16 bytes; kind::mxf4 and kind::mxf4nvf4 read those of 4 bits \
             side by side (PTX ISA 9.7.16.10.4, 5.5.1.1).",
            "Give the tensor map the type that pads elements of 4 bits (16U4_ALIGN16B; `u4_align16` in a launch file), with a box of 128 elements, which then takes \
             128 bytes of each row."
                .into(),
        );
        diagnostic.severity = Severity::Finding;
        for (laid, (_, load)) in operands {
            let text = format!("the box of {} is loaded here, two elements in each byte", laid.which);
            diagnostic.labels.push(self.label(load, text));
        }
        self.findings.add_alike(diagnostic);
    }

    /// An MMA takes operands for elements of another width than those of the tensor map by which they were loaded: a note, since a map may also be
    /// there to move bytes. Of 4 bits that lie side by side, maps of bytes are the usual ones.
    pub fn elements_of_other_width(&mut self, operands: Vec<(Laid, (Element, u32))>) {
        type Loaded = (Laid, (Element, u32));
        let dense = |(laid, (element, _)): &Loaded| laid.d.elements.data < 16 && *element == Element::U4Align8;
        let wide = |(laid, (element, _)): &Loaded| laid.d.elements.log_bits > 2 && !element.is_packed();
        let packed = operands.iter().any(dense);
        let operands: Vec<_> = operands.into_iter().filter(|of| if packed { dense(of) } else { wide(of) }).collect();
        let Some(&(first, (element, _))) = operands.first() else { return };
        if self.depths.of_other_width.contains(&first.site) {
            return;
        }
        self.depths.of_other_width.push(first.site);
        let names: Vec<String> = operands.iter().map(|(laid, _)| laid.which.to_string()).collect();
        let names = names.join(" and ");
        if packed {
            return self.packed_for_padded(first.site, &names, operands);
        }
        let (loaded, taken) = (element.bits(), 1u32 << first.d.elements.log_bits);
        let mut diagnostic = self.problem(
            "type-mismatch",
            first.site,
            format!(
                "an MMA takes {} for elements of {}, which were loaded as elements of {}",
                names,
                counted(taken / 8, "byte"),
                counted(loaded / 8, "byte")
            ),
            "The kind of an MMA and its type say how wide the elements of A and B are (PTX ISA 9.7.16.2, 9.7.15.2); a copy moves the bytes of the \
             tensor map's elements as they are, and nothing converts them on their way.",
            format!(
                "If the tensor holds elements of {loaded} bits, use the MMA for those: {}. If it holds elements of {taken} bits, give the tensor \
                 map a type of {taken} bits: this one counts its sizes and coordinates in {}.",
                match loaded {
                    8 => "kind::f8f6f4 (FP8) or kind::i8, with their types in the instruction descriptor",
                    16 => "kind::f16 (FP16, BF16)",
                    32 => "kind::tf32",
                    _ => "there is none of so many bits",
                },
                counted(loaded / 8, "byte")
            ),
        );
        diagnostic.severity = Severity::Note;
        for (laid, (_, load)) in operands {
            let text =
                format!("the box of {} is loaded here as elements of {}", laid.which, counted(loaded / 8, "byte"));
            diagnostic.labels.push(self.label(load, text));
        }
        self.findings.add(diagnostic);
    }
}
