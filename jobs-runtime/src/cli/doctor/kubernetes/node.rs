//! Walking YAML with its lines.

use saphyr::MarkedYaml;

pub(super) type Node<'a> = MarkedYaml<'a>;

/// The node at a path of keys.
pub(super) fn at<'a>(node: &'a Node<'a>, path: &[&str]) -> Option<&'a Node<'a>> {
    path.iter().try_fold(node, |node, key| node.data.as_mapping_get(key))
}

/// The elements of a list below a key; none where there is no list.
pub(super) fn items<'a>(node: &'a Node<'a>, key: &str) -> impl Iterator<Item = &'a Node<'a>> {
    at(node, &[key]).and_then(|list| list.data.as_sequence()).into_iter().flatten()
}

pub(super) fn text<'a>(node: &'a Node<'a>) -> Option<&'a str> {
    node.data.as_str()
}

pub(super) fn integer(node: &Node<'_>) -> Option<i64> {
    node.data.as_integer()
}

pub(super) fn line(node: &Node<'_>) -> usize {
    node.span.start.line()
}
