"""What a prompt says of how to answer."""

import pytest

from gym_conformance.scouting.asked_forms import asked_forms


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("End with 'The answer is X'.", "The answer is %s"),
        ("The last line should be of this format: 'Answer: $LETTER' (without quotes).", "Answer: %s"),
        ('Finish with "the answer is (X)" where X is the letter.', "the answer is (%s)"),
        ("Finish with \u201cResult: N\u201d.", "Result: %s"),
        ("Put it in <final>your answer</final> tags.", "<final>%s</final>"),
        ("Put it in <answer>...</answer> tags.", "<answer>%s</answer>"),
        ("Use the format: Final Answer: [your answer]", "Final Answer: %s"),
        ('Answer as JSON:\n{"answer": "..."}', '{"answer": "%s"}'),
        ("Reply with **Answer: <number>**", "Answer: %s"),
        ("Write exactly: 50% of it is X", "50%% of it is %s"),
        ("Explain first.\n\nAnswer: {answer}\n", "Answer: %s"),
    ],
)
def test_the_form_comes_first(text: str, form: str) -> None:
    assert asked_forms([text])[0] == form


@pytest.mark.parametrize(
    "text", ["It isn't the dog's fault, it's ours.", "What is 2 + 2?", "Say 'done'.", "'X'", "'" * 3_000, "<a <b" * 40]
)
def test_what_shows_no_form_has_none(text: str) -> None:
    assert asked_forms([text]) == ()


def test_long_prompts_are_searched_at_both_ends() -> None:
    forms = asked_forms(["'First: X'\n" + "word " * 10_000 + "\n" + "w" * 10_000 + "\n'Last: X'"])
    assert forms[:2] == ("First: %s", "Last: %s")
