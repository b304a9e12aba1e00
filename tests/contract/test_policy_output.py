"""What the policy may hand to verify."""

import json

import pytest

from gym_conformance.contract.policy_output import (
    DO_NOTHING,
    RAW_SURROGATE,
    TOKEN_SENTINEL,
    Degenerate,
    degenerate_outputs,
    message,
    response,
    with_tokens,
)

OUTPUTS = degenerate_outputs("add")


def test_names_are_unique_and_name_the_subject() -> None:
    names = [str(output) for output in OUTPUTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("output", [*OUTPUTS, DO_NOTHING], ids=str)
def test_each_travels_as_utf_8(output: Degenerate) -> None:
    """Odd as it is, it is JSON that any server can read: only the raw surrogate is not."""
    assert json.loads(json.dumps(output.response, ensure_ascii=False).encode()) == output.response


def test_the_raw_surrogate_travels_only_as_an_escape() -> None:
    with pytest.raises(UnicodeEncodeError):
        json.dumps(RAW_SURROGATE.response, ensure_ascii=False).encode()
    assert json.loads(json.dumps(RAW_SURROGATE.response)) == RAW_SURROGATE.response


def test_calls_are_of_the_tool_that_is_given() -> None:
    called = {item["name"] for output in OUTPUTS for item in output.items if item["type"] == "function_call"}
    assert called == {"add", "no_such_tool"}


def test_a_response_is_a_new_value_each_time_and_its_fields_can_be_replaced() -> None:
    assert DO_NOTHING.response == DO_NOTHING.response
    assert DO_NOTHING.response is not DO_NOTHING.response
    assert response([], model="mine") == response([]) | {"model": "mine"}


def test_tokens_stand_beside_the_item_s_own_keys() -> None:
    item = message("Done.")
    assert with_tokens(item) == {**item, **TOKEN_SENTINEL}
    assert not TOKEN_SENTINEL.keys() & item.keys()
