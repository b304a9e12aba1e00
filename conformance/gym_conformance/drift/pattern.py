"""Texts that a regular expression matches: a few short ones, for the everyday part of the syntax.

Literals, classes, groups, alternatives, repetition and anchors are read; anything else (look-around,
back-references) gives nothing. Whoever asks checks the texts, so a wrong one costs nothing.
"""

import re
from dataclasses import dataclass

_CLASSES = {"d": "0", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a", "t": "\t", "n": "\n", "r": "\r"}
_ANCHORS = frozenset("bBAZz")
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
_UNION = re.compile(r"^\(\?(?::|P?<[A-Za-z_]\w*>)")
_BARE_BRACKET = re.compile(r"(?<!\\)\[")
_SET_OPERATION = re.compile(r"--|&&|~~|\|\|")  # Python warns of them, for they may come to mean something else
_MOST = 4096


class _Unreadable(Exception):
    pass


@dataclass
class _Reader:
    """Reads one expression, and takes each repetition `extra` times more often than it must be, if it may."""

    text: str
    extra: int
    branch: int
    at: int = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def alternatives(self) -> str:
        options = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            options.append(self.sequence())
        return options[self.branch % len(options)]

    def sequence(self) -> str:
        made = ""
        while self.peek() not in ("", "|", ")"):
            made += self.repeated(self.atom())
        return made

    def repeated(self, atom: str) -> str:
        low, high = 1, 1
        if self.peek() and self.peek() in "*+?":
            low, high = {"*": (0, _MOST), "+": (1, _MOST), "?": (0, 1)}[self.peek()]
            self.at += 1
        elif found := _COUNT.match(self.text, self.at):
            low = int(found[1])
            high = low if found[2] is None else int(found[3] or _MOST)
            self.at = found.end()
        if self.peek() and self.peek() in "?+":  # lazy and possessive repetitions match the same texts
            self.at += 1
        times = min(low + self.extra, high)
        if times * len(atom) > _MOST:
            raise _Unreadable
        return atom * times

    def atom(self) -> str:
        char = self.peek()
        self.at += 1
        if char == "(":
            return self.group()
        if char == "[":
            return self.choice()
        if char == "\\":
            return self.escaped()
        return "" if char in "^$" else "a" if char == "." else char

    def group(self) -> str:
        if self.peek() == "?":
            found = _UNION.match(self.text[self.at - 1 :])
            if not found:
                raise _Unreadable
            self.at += found.end() - 1
        made = self.alternatives()
        if self.peek() != ")":
            raise _Unreadable
        self.at += 1
        return made

    def escaped(self) -> str:
        char = self.peek()
        self.at += 1
        if char.isdigit() or char in ("", "p", "P", "u", "x", "k"):
            raise _Unreadable
        return "" if char in _ANCHORS else _CLASSES.get(char, char)

    def choice(self) -> str:
        end = self.text.find("]", self.at + 1)
        while end > 0 and self.text[end - 1] == "\\":
            end = self.text.find("]", end + 1)
        if end < 0:
            raise _Unreadable
        inside = self.text[self.at : end]
        self.at = end + 1
        if _SET_OPERATION.search(inside):
            raise _Unreadable
        escaped = _BARE_BRACKET.sub(r"\\[", inside)
        member = re.compile(f"[{escaped}]")
        likely = inside[1:2] if inside[:1] == "\\" else inside[:1]
        for char in likely + "aA0bz-_ .~":
            if member.fullmatch(char):
                return char
        raise _Unreadable


def matching(expression: str) -> list[str]:
    """A few texts that probably match, shortest first; [] where the expression is beyond this reader."""
    made = set()
    for extra in (0, 1, 3):
        for branch in range(3):
            try:
                reader = _Reader(expression, extra, branch)
                made.add(reader.alternatives())
            except (_Unreadable, re.error, RecursionError):
                return []
            if reader.at < len(expression):
                return []
    return sorted(made, key=lambda text: (len(text), text))
