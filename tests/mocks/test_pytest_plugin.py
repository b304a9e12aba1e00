"""The fixtures, as a user's test sees them, and what loading them costs: nothing."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]


def test_the_fixtures_work_as_documented(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import httpx
        from gym_mocks.policy import call, say

        def test_gym(mock_gym):
            mock_gym.policy.script("weather", [call("get_weather", city="Paris"), say("Sunny.")])
            run = mock_gym.url("weather_simple_agent") + "/run"
            rollouts = [httpx.post(run, json=row).json() for row in mock_gym.rows]
            assert [r["reward"] for r in rollouts] == [1.0] * len(rollouts)
            assert httpx.get(mock_gym.head_url).status_code == 200

        def test_policy(fake_policy):
            reply = httpx.post(fake_policy.url + "/v1/responses", json={"input": "hello"})
            assert reply.json()["output"][0]["content"][0]["text"] == "hello"

        def test_head(mock_head):
            mock_head.config = {"a": {"resources_servers": {"a": {"port": 1}}}}
            assert "port: 1" in httpx.get(mock_head.url + "/global_config_dict_yaml").json()
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=3)


def test_loading_the_plugin_imports_nothing_else() -> None:
    code = (
        "import pytest, sys; before = set(sys.modules); import gym_mocks.pytest_plugin;print(set(sys.modules) - before)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(loaded.strip("{}\n").replace("'", "").split(", ")) == {"gym_mocks", "gym_mocks.pytest_plugin"}
