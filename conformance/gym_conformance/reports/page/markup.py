"""HTML that is escaped by construction: only `element` makes markup, and every other text in it is escaped."""

from collections.abc import Iterable
from html import escape
from typing import Final

from gym_conformance.reports.shown_text import TEXT, shown


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


_VOID: Final = frozenset({"br", "hr", "img", "input", "meta", "line", "rect", "circle"})

Child = Markup | str | None
Attribute = str | int | float | bool | None


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """An element. In attribute names a trailing `_` is dropped, and others become `-`; None and False leave one out."""
    given = "".join(
        _attribute(name, value) for name, value in attributes.items() if value is not None and value is not False
    )
    if tag in _VOID:
        return Markup(f"<{tag}{given} />")
    return Markup(f"<{tag}{given}>{join(children)}</{tag}>")


def join(children: Iterable[Child]) -> Markup:
    """Markup and texts in a row."""
    return Markup("".join(child if isinstance(child, Markup) else text(child) for child in children if child))


def text(value: object, limit: int = TEXT) -> Markup:
    """A text on one line, escaped, with what it hides made visible, and cut."""
    return Markup(escape(shown(value, limit)))


def preformatted(lines: str) -> Markup:
    """Lines that are fit to show as they stand, escaped."""
    return Markup(escape(lines))


def _attribute(name: str, value: Attribute) -> str:
    spelled = name.rstrip("_").replace("_", "-")
    return f" {spelled}" if value is True else f' {spelled}="{escape(shown(value))}"'
