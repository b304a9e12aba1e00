"""Secrets: what is one, how it may be spelt, and that taking it out leaves JSON what it is."""

import base64
import json
import re
import string
from collections.abc import Callable
from html import escape
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gym_conformance.redaction import NO_SECRETS, REDACTED, Secrets, named_values

PRINTABLE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=8, max_size=40).map(str.strip)
#: What every request says is none, nor what is shown in its place.
NONE = {"application/json", "*/*", "gym-conformance"}
SECRET = PRINTABLE.filter(lambda text: len(text) >= 8 and text.lower() not in REDACTED and text not in NONE)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "upper case": str.upper,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "HTML": escape,
    "percent": lambda text: quote(text, safe=""),
    "percent, lower": lambda text: quote(text, safe="").lower(),
    "percent, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "JSON, each character": lambda text: "".join(f"\\u{ord(character):04X}" for character in text),
    "code points": lambda text: "".join(f"\\U{ord(character):08x}" for character in text),
    "code points, JavaScript": lambda text: "".join(f"\\u{{{ord(character):x}}}" for character in text),
    "HTML, without semicolons": lambda text: "".join(f"&#{ord(character)}" for character in text),
    "UTF-16": lambda text: text.encode("utf-16-le").decode(),
    "hex": lambda text: text.encode().hex(),
    "pattern": re.escape,
    "Markdown": lambda text: "".join(f"\\{one}" if one in string.punctuation else one for one in text),
    "path": quote,
    "form": quote_plus,
    "pointer": lambda text: text.replace("~", "~0").replace("/", "~1"),
    "pointer in a fragment": lambda text: quote(text.replace("~", "~0").replace("/", "~1")),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@settings(deadline=None)
@given(secret=SECRET, before=st.text(max_size=9), after=st.text(max_size=9))
def test_each_spelling_is_found_in_any_text(spelling: str, secret: str, before: str, after: str) -> None:
    spelt = SPELLINGS[spelling](secret)
    assert spelt.lower() not in Secrets([secret]).redact(before + spelt + after).replace(REDACTED, "").lower()


@pytest.mark.parametrize("secret", ["\u015e\u0130FREm1234", "passwor\u03a3"])
def test_letters_that_are_others_in_lower_case_are_found(secret: str) -> None:
    """I with a dot becomes two; sigma another one at a word's end."""
    for before, after in ((" ", " "), ("\u0130", "x"), ("\u03a3", "\u03a3")):
        assert Secrets([secret]).redact(before + secret + after) == before + REDACTED + after


@given(SECRET, st.binary(max_size=7), st.binary(max_size=7))
def test_it_is_found_in_the_base64_of_a_text_that_holds_it(secret: str, before: bytes, after: bytes) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert REDACTED in Secrets([secret]).redact(encode(before + secret.encode() + after).decode())


@given(SECRET, st.integers(8, 40), st.sampled_from(["", "...", "'", '..."']))
@example("0" * 17, 16, "")
@example("0000000'0", 8, "")
@example("0000000'0", 8, '..."')
@example("0" * 17, 9, "." * 30)
def test_its_beginning_is_found_where_a_text_was_cut(secret: str, length: int, end: str) -> None:
    shown = Secrets([secret]).redact(f"token={secret[:length]}{end}")
    assert secret[:8] not in shown.replace(REDACTED, "") or secret[:8] in "token=" + end


@given(JSON, PRINTABLE | st.sampled_from(["true", "null", "1000", '"', "{", "\\", "0.1", "e10", "[]"]))
def test_json_without_a_header_is_still_json_of_that_shape(value: object, header: str) -> None:
    told = Secrets.of_headers({"x": header}).redact_json(value)
    assert json.loads(json.dumps(told)) == told
    assert type(told) is type(value) or told == REDACTED
    assert NO_SECRETS.redact_json(value) == value


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("OPENAI_API_KEY", "sk-abcdefgh", "sk-abcdefgh"),
        ("GITHUB_PAT", "ghp_0123456", "ghp_0123456"),
        ("githubPat", "ghp_0123456", "ghp_0123456"),
        ("DB_PASSWD", "hunter2", "hunter2"),
        ("MYSQL_PWD", "hunter2", "hunter2"),
        ("BASIC_AUTH", "me:hunter2", "me:hunter2"),
        ("SENTRY_DSN", "https://abcdef@sentry.io/1", "abcdef"),
        ("DATABASE_URL", "postgres://me:hunter2@db/x", "hunter2"),
        ("ANYTHING", "see redis://:p%40ssw0rd@host:1", "p@ssw0rd"),
        ("SLACK_WEBHOOK", "https://hooks.slack.com/services/T00/B00/abcdefgh12345678", "abcdefgh12345678"),
        ("AZURE_CONNECTION", "AccountName=x;AccountKey=abcdef123==;y=z", "abcdef123=="),
        ("http_proxy", "http://me:hunter2@proxy:80", "hunter2"),
        ("SECRET_ENV", "hunter2", "hunter2"),
        ("SHOP_TOKEN", "A_TOKEN_ITSELF", "A_TOKEN_ITSELF"),
    ],
)
def test_what_a_name_or_a_url_calls_a_secret(name: str, value: str, secret: str) -> None:
    assert Secrets.of_named([(name, value)]).redact(f"<{secret}>") == f"<{REDACTED}>"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/bin:/bin"),
        ("PWD", "/home/me/project"),
        ("MAX_TOKENS", "4096000"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("BASE_URL", "http://127.0.0.1:8000/v1"),
        ("API_KEY", "none"),
        ("MODE", "hunter2"),
        ("api_key_env", "OPENAI_API_KEY"),
        ("auth_token_env_var", "SHOP_TOKEN"),
    ],
)
def test_what_is_none(name: str, value: str) -> None:
    assert Secrets.of_named([(name, value)]).redact(value) == value


def test_user_and_password_of_basic_authorization() -> None:
    header = "Basic " + base64.b64encode(b"someone:hunter2").decode()
    assert Secrets.of_headers({"authorization": header}).redact("someone has hunter2") == f"{REDACTED} has {REDACTED}"


def test_the_texts_of_a_config() -> None:
    config = {"a": {"api_key": "one", "list": ["two", {"token": "three"}]}, "number": 1}
    assert list(named_values(config)) == [("api_key", "one"), ("list", "two"), ("token", "three")]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("cannot reach postgresql://me:hunter2@db:5432/x", f"cannot reach postgresql://{REDACTED}@db:5432/x"),
        ("'https://ghp_abc@host/x?page=2'", f"'https://{REDACTED}@host/x?page=2'"),
        ("GET /x?page=2&api_key=abc&sig=de HTTP", f"GET /x?page=2&api_key={REDACTED}&sig={REDACTED} HTTP"),
        ("mail me@host; see http://host/@me?q=a@b", "mail me@host; see http://host/@me?q=a@b"),
    ],
)
def test_urls_that_others_say_are_shown_without_their_credentials(said: str, shown: str) -> None:
    assert NO_SECRETS.show(said) == shown
    assert NO_SECRETS.redact(said) == said  # what is sent is not changed
