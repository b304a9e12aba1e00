"""Texts that no parser takes for whole are made of those that a tool knows."""

from pathlib import Path

from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.trajectories.damage import damaged, made_odd
from gym_conformance.trajectories.trajectory import Trajectory

ROW = Row(
    {"responses_create_params": {"input": []}, "cells": {"A1": "pens", "B9": "=SUM(B2:B8)", "C9": "=SUM(C2:C8)"}},
    Source(Path("rows.jsonl"), 1),
)


def test_texts_that_may_be_parsed_are_cut_off_one_of_each_form() -> None:
    forms = damaged(Trajectory(ROW, (Call("find", {"pattern": "[a-z]+", "name": "pens"}),)))
    assert "constructor" in forms  # what a look-up finds in any object of JavaScript
    assert forms[0].startswith("(" * 1_000)
    assert forms[1:7] == ["[a-z]", "[a-", "[a-z]+(", "=SUM(B2:B8", "=SUM(", "=SUM(B2:B8)("]
    assert not any("C2" in form or "pen" in form for form in forms)


def test_a_command_is_cut_off_after_its_first_word() -> None:
    forms = damaged(Trajectory(ROW, (Call("act", {"command": "take the lamp"}), Call("act", {"command": "wait"}))))
    assert "take" in forms
    assert "wait" not in forms


def test_there_are_always_some() -> None:
    assert damaged(Trajectory(Row({"responses_create_params": {"input": []}}, ROW.source), ()))


def test_a_day_is_made_one_that_does_not_exist() -> None:
    odd = made_odd("It is due on 2024-03-06.")
    assert odd[:3] == ["It is due on 0-0-0.", "It is due on 9999-99-99.", "It is due on 0000-00-00."]
    assert made_odd("It is 7.")[0] == "It is 0."


def test_a_letter_becomes_that_of_no_option() -> None:
    assert {"The answer is (J)", "The answer is (Z)"} <= {*made_odd("The answer is (B)")}
    assert not any("(J)" in one for one in made_odd("The answer is (5)"))
