"""Strings of the formats that JSON Schema 2020-12 defines (validation, section 7.3)."""

import datetime as dt
from functools import cache

import jsonschema_rs
from hypothesis import strategies as st

_LABEL = "[a-z](?:[a-z0-9]{0,8}[a-z0-9])?"
_SEGMENT = "[A-Za-z0-9._~-]{1,8}"


@cache
def format_strategy(name: str) -> st.SearchStrategy[str] | None:
    """Strings of the format; None where it has no meaning to JSON Schema, which then admits any string."""
    hostnames = st.from_regex(rf"{_LABEL}\.(?:com|org|example)", fullmatch=True)
    paths = st.from_regex(rf"(?:/{_SEGMENT}){{0,3}}", fullmatch=True)
    emails = st.builds(
        "{}@{}".format, st.from_regex(r"[a-z][a-z0-9]{0,9}(?:[.+_-][a-z0-9]{1,5})?", fullmatch=True), hostnames
    )
    links = st.builds("https://{}{}".format, hostnames, paths)
    dates = st.dates(dt.date(1900, 1, 1), dt.date(2100, 12, 31)).map(dt.date.isoformat)
    # RFC 3339 knows no time without an offset; seconds are always there.
    clocks = st.times().map(lambda time: time.replace(fold=0).isoformat())
    times = st.builds(str.__add__, clocks, st.sampled_from(["Z", "+00:00", "-08:00", "+05:30"]))
    table: dict[str, st.SearchStrategy[str]] = {
        "date": dates,
        "time": times,
        "date-time": st.builds("{}T{}".format, dates, times),
        "duration": st.from_regex(r"P(?:[1-9][0-9]?D|T[1-9][0-9]?[HMS]|[1-9]W|[1-9]Y[1-9]M)", fullmatch=True),
        "email": emails,
        "idn-email": emails,
        "hostname": hostnames,
        "idn-hostname": hostnames,
        "ipv4": st.ip_addresses(v=4).map(str),
        "ipv6": st.ip_addresses(v=6).map(str),
        "uri": links,
        "iri": links,
        "uri-reference": st.one_of(paths, links),
        "iri-reference": st.one_of(paths, links),
        "uri-template": st.builds("{}{}".format, links, st.sampled_from(["", "/{id}", "{?page}"])),
        "uuid": st.uuids().map(str),
        "json-pointer": paths,
        "relative-json-pointer": st.from_regex(r"[0-9](?:#|(?:/[a-z]{1,5}){0,2})", fullmatch=True),
        "regex": st.sampled_from(["", "a", "[a-z]+", "^x.*$", r"\d{2,4}"]),
    }
    return table.get(name)


#: The smallest string of each format, or near it.
SMALLEST = {
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "date-time": "2000-01-01T00:00:00Z",
    "duration": "P1D",
    "email": "a@a.com",
    "idn-email": "a@a.com",
    "hostname": "a",
    "idn-hostname": "a",
    "ipv4": "0.0.0.0",  # noqa: S104 (a value, not a place to bind)
    "ipv6": "::",
    "uri": "a:",
    "iri": "a:",
    "uri-reference": "",
    "iri-reference": "",
    "uri-template": "",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "json-pointer": "",
    "relative-json-pointer": "0",
    "regex": "",
}

_NOT_OF_FORMAT = (
    "",
    "not a {}",
    "2024-13-45",
    "25:61",
    "@",
    "a@",
    "a b",
    "http://",
    "999.1.1.1",
    "{",
    "(",
    "%",
    "~",
    "-",
    "x" * 70,
)


@cache
def not_of_format(name: str) -> tuple[str, ...]:
    """Strings that are not of the format, simple ones first; none for a format without meaning."""
    validator = jsonschema_rs.validator_for({"format": name}, validate_formats=True)
    return tuple(text for shape in _NOT_OF_FORMAT if not validator.is_valid(text := shape.replace("{}", name)))
