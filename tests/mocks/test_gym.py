"""A whole gym, driven over HTTP as a trainer drives it."""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import yaml

from gym_mocks.examples import game, robot, sandbox, weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import FakePolicy, PolicyFault, call, raw_call, say, scripted, scripted_rows
from gym_mocks.reference import DATA, ROLLOUTS, reference_app
from gym_mocks.rollout_faults import RolloutFault
from tests.mocks.conftest import census

FIXTURE = Path(__file__).parents[2] / "fixtures" / "notes_env" / "configs" / "notes_env.yaml"
EXAMPLES = [weather, game, sandbox, robot]


@pytest.fixture(scope="module", autouse=True)
def first_gym() -> None:
    """A process's first event loop opens a pipe for good (libuv's); it is no gym's."""
    with MockGym():
        pass


@pytest.fixture
def gym() -> Iterator[MockGym]:
    before = census()
    with MockGym() as gym:
        gym.add_env(weather.server(), weather.ROWS)
        yield gym
    assert census() == before


def global_config(gym: MockGym) -> dict[str, Any]:
    text = httpx.get(f"{gym.head_url}/global_config_dict_yaml").json()
    config: dict[str, Any] = yaml.safe_load(text)
    return config


def collect(gym: MockGym, rows: list[dict[str, Any]], parallel: int = 4) -> list[dict[str, Any]]:
    """What a trainer does: find each row's agent through the head, and run the row."""
    config = global_config(gym)

    def run(row: Mapping[str, Any]) -> dict[str, Any]:
        agent = next(iter(config[row["agent_ref"]["name"]]["responses_api_agents"].values()))
        reply = client.post(f"http://{agent['host']}:{agent['port']}/run", json=row)
        assert reply.status_code == 200, reply.text
        body: dict[str, Any] = reply.json()
        return body

    with ThreadPoolExecutor(parallel) as pool, httpx.Client(timeout=60) as client:
        return list(pool.map(run, rows))


def test_the_first_example(gym: MockGym) -> None:
    gym.policy.script("weather", [call("get_weather", city="Paris"), say("Sunny.")])
    rollouts = collect(gym, gym.rows)
    assert [rollout["reward"] for rollout in rollouts] == [1.0] * len(weather.ROWS)
    assert gym.policy.calls.last.tools.keys() == {"get_weather"}
    assert [item["type"] for item in rollouts[0]["response"]["output"]] == [
        "function_call",
        "function_call_output",
        "message",
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_examples_pay_for_the_solution_and_for_nothing_else(example: ModuleType) -> None:
    with MockGym() as gym:
        rows = gym.add_env(example.server(), example.ROWS)
        with gym.policy.script("lazy", [say("I do not know.")]):
            assert [rollout["reward"] for rollout in collect(gym, rows)] == [0.0] * len(rows)
        gym.policy.bind("perfect", scripted_rows(example.ROWS, example.SOLUTIONS))
        assert [rollout["reward"] for rollout in collect(gym, rows)] == [1.0] * len(rows)
        agent = gym.url(f"{gym.rows[0]['agent_ref']['name']}")
        metrics = httpx.post(f"{agent}/aggregate_metrics", json={"verify_responses": [{"reward": 1.0}]}).json()
        assert metrics["key_metrics"] == {"mean/reward": 1.0}


def test_several_environments_and_policies_in_one_gym(gym: MockGym) -> None:
    recorded = [json.loads(line) for line in ROLLOUTS.read_text().splitlines()]
    gym.add_resources("stockroom", reference_app())
    gym.add_policy("stock_policy", FakePolicy()).replay("stock", recorded)
    gym.add_agent("stock_agent", resources="stockroom", model="stock_policy")
    stock = [json.loads(line) | {"agent_ref": {"name": "stock_agent"}} for line in DATA.read_text().splitlines()]
    gym.policy.script("weather", weather.SOLUTIONS[0])
    rollouts = collect(gym, [row for pair in zip(gym.rows, stock, strict=False) for row in pair])
    assert [rollout["reward"] for rollout in rollouts] == [1.0] * 10


def test_the_head_tells_of_every_server(gym: MockGym) -> None:
    config = global_config(gym)
    assert config == gym.config
    entry = config["weather"]["resources_servers"]["weather"]
    assert f"http://{entry['host']}:{entry['port']}" == gym.url("weather")
    agent = config["weather_simple_agent"]["responses_api_agents"]["simple_agent"]
    assert agent["resources_server"] == {"type": "resources_servers", "name": "weather"}
    assert agent["model_server"] == {"type": "responses_api_models", "name": "policy_model"}
    instances = httpx.get(f"{gym.head_url}/server_instances").json()
    assert {each["process_name"] for each in instances} == {"policy_model", "weather", "weather_simple_agent"}
    assert all(httpx.get(each["url"]).status_code == 200 for each in instances)
    assert f"http://{config['head_server']['host']}:{config['head_server']['port']}" == gym.head_url


def test_an_envs_own_config_is_composed_in(gym: MockGym, tmp_path: Path) -> None:
    path = tmp_path / "env.yaml"
    path.write_text(FIXTURE.read_text() + "policy_base_url: ${oc.env:POLICY}\n")
    with pytest.raises(ValueError, match="notes_env_resources_server"):
        gym.add_config(path)
    gym.add_resources("notes_env_resources_server", sandbox.server())
    gym.add_config(path)
    config = global_config(gym)
    assert config["policy_base_url"] == "${oc.env:POLICY}"
    entry = config["notes_env_resources_server"]["resources_servers"]["notes_env"]
    assert (entry["domain"], f"http://{entry['host']}:{entry['port']}") == (
        "agent",
        gym.url("notes_env_resources_server"),
    )
    gym.policy.script("any", sandbox.SOLUTIONS[0])
    (rollout,) = collect(gym, [sandbox.ROWS[0] | {"agent_ref": {"name": "notes_env_simple_agent"}}])
    assert rollout["reward"] == 1.0


def test_each_agent_has_an_environment_server_at_its_own_address(gym: MockGym, tmp_path: Path) -> None:
    """nemo-gym 0.7.0 reaches agents in no other way; the file's own is taken where it has one."""
    path = tmp_path / "env.yaml"
    agent = {
        "resources_server": {"type": "resources_servers", "name": "weather"},
        "model_server": {"type": "responses_api_models", "name": "policy_model"},
    }
    path.write_text(
        yaml.safe_dump(
            {
                "theirs": {"responses_api_agents": {"simple_agent": agent}},
                "front": {"environment_servers": {"legacy_agent": {"agent_server": {"name": "theirs"}}}},
            }
        )
    )
    gym.add_config(path)
    config = global_config(gym)
    fronts = {name: kinds["environment_servers"] for name, kinds in config.items() if "environment_servers" in kinds}
    assert fronts.keys() == {"front", "weather_simple_agent_environment_server"}
    for server in (kinds["legacy_agent"] for kinds in fronts.values()):
        assert f"http://{server['host']}:{server['port']}" == gym.url(server["agent_server"]["name"])


def test_the_written_config_goes_with_the_gym(tmp_path: Path) -> None:
    with MockGym() as gym:
        gym.add_env(weather.server(), weather.ROWS)
        temporary, kept = gym.write_config(), gym.write_config(tmp_path / "gym.yaml")
        assert yaml.safe_load(temporary.read_text()) == yaml.safe_load(kept.read_text()) == gym.config
    assert not temporary.exists()
    assert kept.exists()


def test_errors_of_tools_reach_the_policy_and_the_session_goes_on(gym: MockGym) -> None:
    gym.policy.script("p", [raw_call("get_weather", "{"), call("no_such"), call("get_weather", city="x"), "Done."])
    (rollout,) = collect(gym, gym.rows[:1])
    outputs = [item["output"] for item in rollout["response"]["output"] if item["type"] == "function_call_output"]
    assert outputs[0].startswith('{"error": "Invalid tool call arguments: JSONDecodeError(')
    assert json.loads(outputs[1]) == {"detail": "Not Found"}
    assert rollout["reward"] == 1.0


def test_a_tool_that_raises_loses_the_session_as_with_the_default_agent() -> None:
    """The 500 has no cookie, and the agent replaces its cookies: verify scores a session that did nothing."""

    def broken(city: str) -> str:
        raise KeyError(city)

    server = weather.server()
    with MockGym() as gym:
        rows = gym.add_env(
            type(server)("weather", tools=[weather.get_weather, broken], verify=weather.verify, state=weather.Asked),
            weather.ROWS[:1],
        )
        gym.policy.script("p", [call("get_weather", city="a"), call("broken", city="b"), "Done."])
        (rollout,) = collect(gym, rows)
        assert rollout["reward"] == 0.0
        assert rollout["response"]["output"][3]["output"] == "\"KeyError('b')\""


def test_a_failing_policy_is_the_agents_500(gym: MockGym) -> None:
    gym.policy.fail(PolicyFault("status", status=500))
    reply = httpx.post(f"{gym.url('weather_simple_agent')}/run", json=gym.rows[0])
    assert reply.status_code == 500
    assert reply.json().startswith("Hit an exception in SimpleAgent___weather_simple_agent calling an inner server: b'")


def test_usage_is_summed_over_the_turns(gym: MockGym) -> None:
    gym.policy.script("weather", weather.SOLUTIONS[0])
    (rollout,) = collect(gym, gym.rows[:1])
    turns = [rollout["response"]["usage"][key] for key in ("input_tokens", "output_tokens", "total_tokens")]
    assert turns[0] + turns[1] == turns[2]
    assert gym.policy.calls.count == 2


def test_two_gyms_share_nothing() -> None:
    with MockGym() as one, MockGym() as other:
        for gym in (one, other):
            gym.add_env(weather.server(), weather.ROWS)
        one.policy.script("a", weather.SOLUTIONS[0])
        assert [r["reward"] for r in collect(one, one.rows)] == [1.0] * 5
        assert [r["reward"] for r in collect(other, other.rows)] == [0.0] * 5
        assert (one.policy.calls.count, other.policy.calls.count) == (10, 5)


def test_a_gym_starts_again_after_a_failure() -> None:
    before = census()
    with pytest.raises(ZeroDivisionError), MockGym() as gym:
        gym.add_env(weather.server(), [{"broken": 1 / 0}])
    gym.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(gym.head_url)
    with MockGym() as gym:
        assert httpx.get(gym.head_url).status_code == 200
    assert census() == before


def test_a_name_is_given_once_and_an_unknown_one_is_told(gym: MockGym) -> None:
    with pytest.raises(ValueError, match="already"):
        gym.add_resources("weather", weather.server())
    with pytest.raises(ValueError, match=r"no server is named 'x'; there are .*weather"):
        gym.url("x")


def test_each_rollout_on_its_own_route(gym: MockGym) -> None:
    routes = [gym.policy.script(f"rollout-{n}", weather.SOLUTIONS[n % 5]) for n in range(100)]
    rows = [
        row | {"responses_create_params": row["responses_create_params"] | {"model": f"rollout-{n}"}}
        for n, row in enumerate(gym.rows * 20)
    ]
    assert [rollout["reward"] for rollout in collect(gym, rows, parallel=20)] == [1.0] * 100
    assert {len(gym.policy.calls.of(route.name)) for route in routes} == {2}


def test_a_gym_that_is_closed_is_not_entered_again() -> None:
    with MockGym() as gym:
        pass
    with pytest.raises(RuntimeError, match="make another"), gym:
        pass
    with pytest.raises(RuntimeError, match="make another"):
        gym.add_policy("late", FakePolicy())


MISTAKES: dict[str, tuple[Callable[[MockGym], object], str]] = {
    "text-for-turns": (lambda gym: gym.policy.script("m", "Sunny."), "a script is a list of turns: not 'Sunny.'"),
    "turn-for-turns": (lambda _: scripted(say("Sunny.")), "a script is a list of turns: not Say"),  # type: ignore[arg-type]
    "turns-for-policy": (lambda gym: gym.policy.bind("m", [say("x")]), "a function of the request"),  # type: ignore[arg-type]
    "text-for-policy": (lambda _: FakePolicy("x"), "a function of the request"),  # type: ignore[arg-type]
    "number": (lambda _: say(3), "a text is expected: not 3"),  # type: ignore[arg-type]
    "object": (lambda _: raw_call("get", {}), "a text is expected: not {}"),  # type: ignore[arg-type]
    "rollouts": (lambda gym: gym.policy.replay("m", [{"output": []}]), "a recorded rollout has"),
    "rollout": (lambda gym: gym.policy.replay("m", [{"response": {}}]), "a recorded rollout has"),
    "path": (lambda gym: gym.policy.accept("pause"), "begins with a slash: not 'pause'"),
    "kind": (lambda gym: gym.policy.fail("cut"), "a PolicyFault is expected: not 'cut'"),  # type: ignore[arg-type]
    "rollouts-fault": (lambda gym: gym.policy.fail(RolloutFault("lost")), "a PolicyFault is expected"),  # type: ignore[arg-type]
    "policys-fault": (lambda gym: gym.fail(PolicyFault("cut")), "PolicyFault is for policy.fail"),  # type: ignore[arg-type]
    "turn": (lambda _: PolicyFault("cut", turn="1"), "turn='1' is no turn"),  # type: ignore[arg-type]
    "tokens": (lambda _: FakePolicy(tokens="gpt2"), "a tokenizer is expected: not 'gpt2'"),  # type: ignore[arg-type]
    "order": (lambda gym: gym.add_env(weather.ROWS, weather.server()), "ResourcesServer and its rows"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_script_is_told_where_it_is_made(gym: MockGym, mistake: str) -> None:
    made, told = MISTAKES[mistake]
    with pytest.raises((TypeError, ValueError)) as error:
        made(gym)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_configuration_may_be_named_by_a_text(gym: MockGym, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1", encoding="utf-8")
    gym.add_config(str(tmp_path / "a.yaml"))
    assert gym.config["a"] == 1


def test_a_resources_server_is_asked_without_the_rollouts_name() -> None:
    """As agents of nemo-gym 0.5.1 and later ask if `observability_enabled`; a fault of the path happens there, too."""
    with MockGym() as gym:
        url = gym.add_resources("weather", weather.server())
        assert httpx.post(f"{url}/ng-rollout/3-0-a1/seed_session", json=weather.ROWS[0]).json() == {}
        gym.fail(RolloutFault("status", path="/seed_session", status=503))
        assert httpx.post(f"{url}/ng-rollout/3-0-a1/seed_session", json=weather.ROWS[0]).status_code == 503
