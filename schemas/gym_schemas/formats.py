"""String formats of JSON Schema 2020-12 (validation, section 7.3), as patterns; simple ones first."""

from functools import cache

import jsonschema_rs

_LABEL = "[a-z]([a-z0-9]{0,8}[a-z0-9])?"
_HOST = rf"({_LABEL}\.(com|org|example))"
_SEGMENT = "[A-Za-z0-9._~-]{1,8}"
_PATH = f"(/{_SEGMENT}){{0,3}}"
_LINK = f"https://{_HOST}{_PATH}"
_DATE = r"((20\d\d|19\d\d)-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|2024-02-29|2100-12-31)"
_TIME = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{3})?(Z|\+00:00|-08:00|\+05:30)"  # RFC 3339 requires an offset
_EMAIL = rf"[a-z][a-z0-9]{{0,9}}([.+_-][a-z0-9]{{1,5}})?@{_HOST}"
_BYTE = r"(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])"

PATTERNS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": "P([1-9][0-9]?D|T[1-9][0-9]?[HMS]|[1-9]W|[1-9]Y[1-9]M)",
    "email": f"a@a\\.com|{_EMAIL}",
    "idn-email": f"a@a\\.com|{_EMAIL}",
    "hostname": f"{_LABEL}|{_HOST}",
    "idn-hostname": f"{_LABEL}|{_HOST}",
    "ipv4": rf"{_BYTE}(\.{_BYTE}){{3}}",
    "ipv6": "::[1-9a-f]?|([1-9a-f][0-9a-f]{0,3}:){7}[1-9a-f][0-9a-f]{0,3}",
    "uri": f"a:|{_LINK}",
    "iri": f"a:|{_LINK}",
    "uri-reference": f"{_PATH}|{_LINK}",
    "iri-reference": f"{_PATH}|{_LINK}",
    "uri-template": rf"{_PATH}|{_LINK}(/\{{id\}}|\{{\?page\}})?",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "json-pointer": _PATH,
    "relative-json-pointer": "[0-9](#|(/[a-z]{1,5}){0,2})?",
    "regex": r"a?|\[a-z\]\+|\^x\.\*\$|\\d\{2,4\}",
}

_NOT_OF_FORMAT = (
    *("", "not a {}", "2024-13-45", "25:61", "@", "a@", "a b", "http://", "999.1.1.1", "{", "(", "%", "~", "-"),
    "x" * 70,
)


@cache
def not_of_format(name: str) -> tuple[str, ...]:
    """Strings that do not have the format, simple ones first; empty for an unknown format."""
    validator = jsonschema_rs.validator_for({"format": name}, validate_formats=True)
    return tuple(text for shape in _NOT_OF_FORMAT if not validator.is_valid(text := shape.replace("{}", name)))
