"""Requests as bytes: what is asked for stands in them once, and no line of them is another."""

import pytest

from gym_conformance.contract.session_cookies import Cookies
from gym_conformance.session.exchange import Request
from gym_conformance.session.request_bytes import NotWritable, RequestBytes


def lines(request: Request, url: str = "http://127.0.0.1:80/below", **headers: str) -> list[bytes]:
    return RequestBytes(url, headers).written(request).split(b"\r\n")


def test_a_request_is_written_whole() -> None:
    cookies = Cookies((("a", "1"), ("b", "2")))
    assert lines(Request("POST", "/verify?a=%20#x", b"{}", {"Content-Type": "application/json"}, cookies), X="y") == [
        b"POST /below/verify?a=%20 HTTP/1.1",
        b"host: 127.0.0.1",
        b"accept: */*",
        b"user-agent: gym-conformance",
        b"accept-encoding: identity",
        b"x: y",
        b"content-type: application/json",
        b"cookie: a=1; b=2",
        b"content-length: 2",
        b"",
        b"{}",
    ]


def test_the_requests_own_header_takes_the_place_of_ours_and_of_the_users() -> None:
    written = lines(Request("GET", "/", headers={"ACCEPT": "text/html", "X-One": "mine"}), **{"x-one": "theirs"})
    assert [line for line in written if line.startswith((b"accept:", b"x-one"))] == [
        b"accept: text/html",
        b"x-one: mine",
    ]


@pytest.mark.parametrize(("method", "said"), [("POST", True), ("PUT", True), ("GET", False), ("DELETE", False)])
def test_a_request_without_a_body_says_its_length_where_servers_ask_for_it(method: str, said: bool) -> None:
    assert (b"content-length: 0" in lines(Request(method, "/"))) == said


def test_lines_that_would_be_two_or_none_are_refused() -> None:
    for bad in ("a\r\nb: c", "a\0b", "a\nb"):
        with pytest.raises(NotWritable, match="illegal header line"):
            lines(Request("GET", "/", cookies=Cookies((("a", bad),))))
        with pytest.raises(NotWritable, match="illegal header line"):
            lines(Request("GET", "/", headers={"a": bad}))
    with pytest.raises(NotWritable, match="illegal request line"):
        lines(Request("G T", "/"))
