"""Cookies as values: what a reply sets, what a client sends back, whose session it names."""

import base64
import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gym_conformance.contract.session_cookies import (
    NO_COOKIES,
    Cookies,
    parse_set_cookie,
    payload_of,
    read_session_id,
    received,
)
from gym_mocks.resources import SignedCookie

STOCK = SignedCookie("MyServer___mine")


def as_header(sent: bytes) -> str:
    """Bytes as they are read off the wire."""
    return sent.decode("latin-1")


def test_a_stock_cookie_is_read_with_its_attributes() -> None:
    cookie = parse_set_cookie(STOCK.write("the-id"))
    assert cookie.name == "MyServer___mine"
    assert read_session_id(cookie.value) == "the-id"
    assert cookie.attributes == {"path": "/", "max-age": "1209600", "httponly": "", "samesite": "lax"}
    assert not cookie.expires_at_once


@pytest.mark.parametrize(
    ("header", "name", "value"),
    [
        ("a=b", "a", "b"),
        (' a = "b c" ; Path=/', "a", "b c"),
        ("a=b=c", "a", "b=c"),
        ("a", "a", ""),
        ("=b", "", "b"),
        ("", "", ""),
        (";;", "", ""),
    ],
)
def test_any_header_is_read(header: str, name: str, value: str) -> None:
    cookie = parse_set_cookie(header)
    assert (cookie.name, cookie.value) == (name, value)


@pytest.mark.parametrize(
    ("max_age", "deleted"),
    [
        ("0", True),
        ("000", True),
        ("-1", True),
        ("1", False),
        ("", False),
        ("--5", False),
        ("²", False),
        ("9" * 5000, False),
        ("-" + "9" * 5000, True),
        ("soon", False),
    ],
)
def test_a_cookie_without_time_is_deleted(max_age: str, deleted: bool) -> None:
    assert parse_set_cookie(f"a=b; Max-Age={max_age}").expires_at_once is deleted


@pytest.mark.parametrize(
    ("attributes", "deleted", "seconds"),
    [
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", True, -1_600_000_000),
        ("expires=Thursday, 01-Jan-70 00:00:00 GMT; path=/", True, -1_600_000_000),
        ("Expires=Sun, 13 Sep 2020 12:26:40 GMT", False, 0),
        ("Expires=Sun, 13-Sep-2020 12:27:40 GMT", False, 60),
        ("Expires=Sun, 13 Sep 2020 12:27:40 GMT; Max-Age=90", False, 90),
        ("Expires=Sun, 13 Sep 2020 12:27:40 GMT; Max-Age=soon", False, 60),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=90", False, 90),
        ("Expires=Sun, 13 Sep 2020 14:27:40 +0200", False, 60),
        ("Expires=soon", False, math.inf),
        ("Expires=Sun, 13 Sep 99999 12:27:40 GMT", False, math.inf),
        ("", False, math.inf),
    ],
)
def test_a_cookie_lasts_until_it_expires_unless_it_has_an_age(attributes: str, deleted: bool, seconds: float) -> None:
    cookie = parse_set_cookie(f"a=b; {attributes}")
    assert cookie.expires_at_once is deleted
    assert cookie.seconds(datetime.fromtimestamp(1_600_000_000, UTC)) == seconds
    assert bool(received([f"a=b; {attributes}"])) is not deleted


def test_the_last_of_equal_names_is_kept_and_deleted_ones_are_not() -> None:
    kept = received(["a=1", "b=2; max-age=0", "a=3"], origin=7)
    assert kept == Cookies((("a", "3"),), 7)
    assert received([], origin=7) == NO_COOKIES
    assert not received(["a=1; max-age=0"], origin=7)
    assert not received(["a=1", "a=; max-age=0"], origin=7)  # set and deleted by one reply, as every client takes it


@given(st.binary().map(as_header))
def test_every_id_is_read_back_from_its_payload(session_id: str) -> None:
    assert read_session_id(payload_of(session_id)) == session_id
    assert read_session_id(payload_of(session_id) + ".aR3zZw.signature") == session_id


@pytest.mark.parametrize(
    "value",
    ["", ".", "plain", "caf\u00e9", "\ud800", "e30=", "W10=", "bnVsbA==", base64.b64encode(b"[" * 200_000).decode()]
    + [base64.b64encode(json.dumps({"session_id": other}).encode()).decode() for other in (None, 1, ["x"])],
)
def test_what_names_no_session_reads_as_none(value: str) -> None:
    assert read_session_id(value) is None


@given(st.binary().map(as_header))
def test_whatever_is_sent_is_read_without_an_exception(header: str) -> None:
    cookie = parse_set_cookie(header)
    read_session_id(cookie.value)
    assert cookie.expires_at_once in (True, False)


def test_a_forger_changes_every_value() -> None:
    assert Cookies((("a", "1"), ("b", "2")), 3).with_value("x").header == "a=x; b=x"


def test_the_session_s_cookie_is_found_among_others() -> None:
    mine = ("mine", payload_of("the-id"))
    assert Cookies((("sticky", "backend-3"), mine)).session == mine
    assert Cookies((("one", "1"), ("two", "2"))).session == ("one", "1")


@pytest.mark.parametrize(
    ("held", "came", "expected"),
    [
        (Cookies((("a", "1"),), 1), NO_COOKIES, Cookies((("a", "1"),), 1)),
        (Cookies((("a", "1"),), 1), Cookies((("a", "2"),), 2), Cookies((("a", "2"),), 2)),
        (Cookies((("a", "1"),), 1), Cookies((("b", "2"),), 2), Cookies((("a", "1"), ("b", "2")))),
        (NO_COOKIES, Cookies((("b", "2"),), 2), Cookies((("b", "2"),), 2)),
    ],
)
def test_a_collecting_client_keeps_each_until_it_is_set_anew(held: Cookies, came: Cookies, expected: Cookies) -> None:
    assert held.updated(came) == expected
