"""A proof is a proof: on random schemas, nothing that is proven contained has a value that says otherwise."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gym_conformance.drift.lax import closed, lax
from gym_schemas import Acceptance, boundary_values, contains, upgrade
from tests.drift.pairs import OTHER_TREE, TEXT_TREE, TREE

Schemas = st.SearchStrategy[Any]

SMALL = st.integers(0, 3)
LEAVES: Schemas = st.one_of(
    st.sampled_from(
        [True, {}, {"type": "null"}, {"type": "boolean"}, {"type": ["string", "null"]}, {"enum": [1, "a"]}]
    ),
    st.builds(lambda low, high: {"type": "integer", "minimum": low, "maximum": low + high}, SMALL, SMALL),
    st.builds(lambda low: {"type": "number", "exclusiveMinimum": low}, SMALL),
    st.builds(lambda low, high: {"type": "string", "minLength": low, "maxLength": low + high}, SMALL, SMALL),
    st.builds(lambda step: {"type": "integer", "multipleOf": step + 1}, SMALL),
)


def _combined(inner: Schemas) -> Schemas:
    names = st.sampled_from(["a", "b", "c"])
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(names, inner, max_size=2)},
        optional={
            "required": st.lists(names, unique=True, max_size=2),
            "additionalProperties": st.one_of(st.booleans(), inner),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"minItems": SMALL, "maxItems": SMALL, "uniqueItems": st.booleans()},
    )
    unions = st.builds(
        lambda key, branches: {key: branches},
        st.sampled_from(["anyOf", "oneOf"]),
        st.lists(inner, min_size=1, max_size=2),
    )
    return st.one_of(objects, arrays, unions)


SCHEMAS = st.recursive(LEAVES, _combined, max_leaves=5)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(SCHEMAS, SCHEMAS)
def test_no_proof_is_contradicted(narrow: Any, wide: Any) -> None:
    if contains(wide, narrow):
        allowed = Acceptance(wide)
        assert [value for value in boundary_values(narrow) if not allowed.accepts(value)] == []


@settings(max_examples=80, deadline=None, derandomize=True)
@given(SCHEMAS)
def test_the_readings_only_narrow_and_only_widen(schema: Any) -> None:
    taken, loosely = Acceptance(schema), Acceptance(lax(schema))
    assert all(loosely.accepts(value) for value in boundary_values(schema))
    if "oneOf" not in str(schema):  # which is not monotonic: the definition itself is asked as well
        assert all(taken.accepts(value) for value in boundary_values(closed(schema)))


def test_recursion() -> None:
    assert contains(OTHER_TREE, TREE)
    assert contains(TREE, OTHER_TREE)
    assert not contains(TEXT_TREE, TREE)


def test_a_union_that_holds_itself_proves_nothing() -> None:
    loop = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "integer"}]}}}
    assert not contains(loop, {"type": "string", "pattern": "^a"})


def test_what_an_inner_pair_leaned_on_falls_with_it() -> None:
    """The inner list is contained only if the outer pair were, and that one fails at the last property."""

    def document(last: str) -> Any:
        node = {
            "type": "object",
            "properties": {"next": {"type": "array", "items": {"$ref": "#/$defs/N"}}, "value": {"type": last}},
        }
        either = {"anyOf": [{"$ref": "#/$defs/N"}, {"$ref": "#/$defs/N/properties/next"}]}
        return upgrade({**either, "$defs": {"N": node}})

    assert not contains(document("string"), document("integer"))
