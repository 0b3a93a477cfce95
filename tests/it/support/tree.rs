//! A small tree of XML elements by namespace, for requests and for looking at answers in tests.
//!
//! Refuses document types; keeps neither comments nor the order of text and elements.

use std::collections::BTreeMap;

use quick_xml::NsReader;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;

/// Elements may lie so deep.
const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) namespace: String,
    pub(crate) local: String,
    /// By name as written; declarations of namespaces are left out.
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) children: Vec<Element>,
    /// All text directly within, as it is.
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn is(&self, namespace: &str, local: &str) -> bool {
        self.namespace == namespace && self.local == local
    }

    pub(crate) fn child(&self, local: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.local == local)
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }

    /// The first element of that local name at any depth, itself included.
    pub(crate) fn find(&self, local: &str) -> Option<&Element> {
        if self.local == local {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.find(local))
    }

    /// All elements of that local name at any depth.
    pub(crate) fn find_all<'a>(&'a self, local: &str, found: &mut Vec<&'a Element>) {
        if self.local == local {
            found.push(self);
        }
        for child in &self.children {
            child.find_all(local, found);
        }
    }

    /// The text of the first element of that local name, trimmed; of its descendants, if it has none itself.
    pub(crate) fn text_of(&self, local: &str) -> Option<String> {
        self.find(local).map(|element| element.all_text().trim().to_owned())
    }

    pub(crate) fn all_text(&self) -> String {
        let mut text = self.text.clone();
        for child in &self.children {
            text.push_str(&child.all_text());
        }
        text
    }
}

/// Reads one document; says in words what is wrong with it.
pub(crate) fn parse(document: &str) -> Result<Element, String> {
    let mut reader = NsReader::from_str(document);
    let mut open: Vec<Element> = Vec::new();
    let mut root: Option<Element> = None;
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(|error| error.to_string())?;
        let namespace = match namespace {
            ResolveResult::Bound(bound) => bound.as_ref().to_owned(),
            ResolveResult::Unbound => String::new(),
            ResolveResult::Unknown(prefix) => return Err(format!("prefix {} is not declared", prefix)),
        };
        match event {
            Event::Start(start) => {
                if root.is_some() || open.len() >= DEPTH_MAX {
                    return Err("more than one root element, or too deep".to_owned());
                }
                open.push(element(namespace, &start)?);
            }
            Event::Empty(start) => close(element(namespace, &start)?, &mut open, &mut root)?,
            Event::End(_) => {
                let closed = open.pop().ok_or("an end without a start")?;
                close(closed, &mut open, &mut root)?;
            }
            Event::Text(text) => add(&mut open, &text.xml10_content())?,
            Event::CData(data) => add(&mut open, &data.xml10_content())?,
            Event::GeneralRef(reference) => {
                let resolved = match reference.resolve_char_ref().map_err(|error| error.to_string())? {
                    Some(character) => character.to_string(),
                    None => entity(&reference)?,
                };
                add(&mut open, &resolved)?;
            }
            Event::DocType(_) => return Err("a document type declaration".to_owned()),
            Event::Eof => break,
            _ => {}
        }
    }
    if !open.is_empty() {
        return Err("the document ends within an element".to_owned());
    }
    root.ok_or_else(|| "no root element".to_owned())
}

fn close(element: Element, open: &mut [Element], root: &mut Option<Element>) -> Result<(), String> {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None if root.is_some() => return Err("more than one root element".to_owned()),
        None => *root = Some(element),
    }
    Ok(())
}

fn add(open: &mut [Element], text: &str) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim_matches(['\u{feff}', ' ', '\n', '\r', '\t']).is_empty() => {}
        None => return Err("text outside the root element".to_owned()),
    }
    Ok(())
}

fn element(namespace: String, start: &quick_xml::events::BytesStart<'_>) -> Result<Element, String> {
    let mut attributes = BTreeMap::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let name = attribute.key.as_ref().to_owned();
        if name == "xmlns" || name.starts_with("xmlns:") {
            continue;
        }
        let value = quick_xml::escape::unescape(&attribute.value).map_err(|error| error.to_string())?.into_owned();
        attributes.insert(name, value);
    }
    let local = start.local_name().as_ref().to_owned();
    Ok(Element { namespace, local, attributes, ..Element::default() })
}

fn entity(name: &str) -> Result<String, String> {
    let resolved = match name {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "quot" => "\"",
        "apos" => "'",
        _ => return Err(format!("unknown entity {name}")),
    };
    Ok(resolved.to_owned())
}
