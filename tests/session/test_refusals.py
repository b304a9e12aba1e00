"""What a 2xx says by its wording."""

import json

import pytest

from gym_conformance.session.exchange import Reply
from gym_conformance.session.refusals import grants, may_tell_of_refusal, says_error, says_no, says_yes


def of(text: str) -> Reply:
    return Reply(200, (), text.encode(), 0.0)


@pytest.mark.parametrize("text", ["#REF!", "'#VALUE!'", "! no such cell", '"#cell"'])
def test_a_sign_is_a_refusal(text: str) -> None:
    assert says_no(of(text))


@pytest.mark.parametrize("text", ["# Goods\n[1] link", "## Goods", "[1] link"])
def test_a_heading_is_none(text: str) -> None:
    assert not says_no(of(text))


@pytest.mark.parametrize(
    "text",
    [
        "Fehler: 'wochen' muss zwischen 1 und 4 liegen.",
        "Erreur : ville inconnue",
        "Error: la ciudad es desconocida",
        "Errore: valore mancante",
        "错误: 没有这个方向",
        "エラー: 無効な値です",
        "오류: 값이 없습니다",
    ],
)
def test_a_refusal_may_be_in_another_language(text: str) -> None:
    assert says_error(of(text))
    assert says_error(of(json.dumps({"output": text})))
    assert not says_error(of(json.dumps({"title": text, "pages": 3})))
    assert says_no(of(text))
    assert says_no(of(json.dumps({"result": text})))  # in which all other letters are escaped
    assert may_tell_of_refusal([text])


@pytest.mark.parametrize("text", ["Gern! Das Buch gehört Ihnen.", "你拿起了灯。", "Voilà : deux billets."])
def test_other_words_of_these_languages_are_none(text: str) -> None:
    assert not says_no(of(text))


def test_what_the_call_itself_said_refuses_nothing() -> None:
    reply = of(json.dumps({"status": "cancelled", "reason": "no longer needed"}))
    assert says_no(reply)
    assert not grants(reply)
    asked = {"order": "W1", "reason": "no longer needed"}
    assert says_yes(reply, asked)
    assert grants(reply, asked)
    assert not grants(of("error: no such order W1"), {"order": "W1", "reason": "no"}), "a word of the server's own"
    assert not grants(of("unknown"), {"letter": "u"}), "whole words alone"


@pytest.mark.parametrize(
    "said", [{"no": 12, "title": "Lamp"}, [{"no": "A12"}], {"title": "Ländler no. 4"}, "Take no.4"]
)
def test_the_number_of_a_thing_is_no_refusal(said: object) -> None:
    assert grants(of(json.dumps(said)))


@pytest.mark.parametrize("said", [{"message": "no lamp"}, {"no": "there is no 12"}, "No. That is 4 too many.", "no"])
def test_a_no_is_one(said: object) -> None:
    assert not grants(of(json.dumps(said)))
