"""Trees of XML, read safely: entities, DTDs and the network off, and without lxml's "huge" mode, which caps depth and text.

Names are those without a namespace: the same format comes under several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lxml.etree import _Element

_CUT_SHORT = frozenset(
    f"ERR_{name}"
    for name in "TAG_NOT_FINISHED TAG_NAME_MISMATCH DOCUMENT_END LT_IN_ATTRIBUTE ATTRIBUTE_NOT_FINISHED GT_REQUIRED"
    " LTSLASH_REQUIRED NAME_REQUIRED INVALID_CHAR DOCUMENT_EMPTY".split()
)
"""Faults after which words of a part are missing; strange namespaces and the like cost nothing."""
DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
"""Of XML that is text already: the encoding that it names was that of the bytes."""


def parse_xml(data: bytes) -> tuple[_Element | None, str]:
    """A tree from XML, None where nothing of it can be read, and in words what had to be repaired or left out, or ""."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, recover=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        root = None
    if root is None:
        return None, "is not XML"
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and next(declared.iterentities(), None) is not None:
        return root, "declares entities, which are not followed"
    broken = any(entry.type_name in _CUT_SHORT for entry in parser.error_log)
    return root, "is not well-formed XML" if broken else ""


def parse_text(text: str) -> _Element | None:
    """The tree of XML that is text already; None where nothing of it can be read."""
    return parse_xml(DECLARATION.sub("", text, count=1).encode("utf-8"))[0]


def local(node: Any) -> str:
    """Name of an element without its namespace; "" for an entity, comment or instruction."""
    tag = node.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(node: Any, name: str) -> str:
    """Value of an attribute by its name without namespace; "" where there is none, or no node."""
    for key, value in node.attrib.items() if node is not None else ():
        if key.rpartition("}")[2] == name:
            return str(value)
    return ""


def child(node: Any, *names: str) -> Any:
    """The first descendant along a path of child names, or None."""
    for name in names:
        node = next((inner for inner in node if local(inner) == name), None) if node is not None else None
    return node


def value(node: Any, *names: str) -> str:
    """The attribute `val` of the first descendant along a path of child names, or ""."""
    return attribute(child(node, *names), "val")


def descendants(node: Any, *names: str) -> Iterator[Any]:
    """All elements below (and at) a node with one of these names, in document order; none of no node."""
    return (inner for inner in (node.iter() if node is not None else ()) if local(inner) in names)


def text_of(node: Any, *names: str) -> str:
    return "".join(inner.text or "" for inner in descendants(node, *names))


def is_on(node: Any) -> bool:
    """Whether a switch of Office is there and not turned off."""
    return node is not None and attribute(node, "val") not in ("0", "false", "off")


def chosen(node: Any) -> Any:
    """The first choice of an alternative, else its fallback: with both, each would come twice."""
    choice = child(node, "Choice")
    return choice if choice is not None else child(node, "Fallback")
