"""`python -m gym_mocks` serves the reference and stops cleanly."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from gym_mocks import __main__ as command_line
from gym_mocks.__main__ import STOPS, main
from gym_mocks.examples import robot
from gym_mocks.gym import MockGym


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_told_to_stop(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "gym_mocks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        data = process.stdout.readline().split()[-1]
        assert httpx.get(url).json() == {"status": "ok"}
        assert Path(data).is_file()
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")


def test_a_whole_gym_by_hand(tmp_path: Path) -> None:
    config = tmp_path / "gym.yaml"
    command = [sys.executable, "-m", "gym_mocks", "serve", "--env", "robot", "--env", "game"]
    with subprocess.Popen(
        [*command, "--write-config", str(config)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = list(iter(process.stdout.readline, "Ctrl-C stops it.\n"))
        urls = dict(line.split(": ") for line in map(str.strip, lines))
        row = {"responses_create_params": robot.ROWS[0]["responses_create_params"], "goal_x": 2, "goal_y": 0}
        assert httpx.post(f"{urls['robot_simple_agent']}/run", json=row).json()["reward"] == 1.0
        chat = f"{urls['policy_model']}/v1/chat/completions"
        other = httpx.post(chat, json={"messages": [{"role": "user", "content": "a prompt of no row"}]})
        assert other.json()["choices"][0]["message"]["content"] == "a prompt of no row"
        assert str(yaml.safe_load(config.read_text())["head_server"]["port"]) in urls["head"]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")


def test_an_env_s_own_configuration_is_served_by_mocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = "simple_agent: {resources_server: {name: sums}, model_server: {name: policy_model}}"
    config = tmp_path / "sums.yaml"
    config.write_text(f"sums: {{resources_servers: {{sums: {{}}}}}}\nmine: {{responses_api_agents: {{{agent}}}}}\n")
    said = list[str]()
    monkeypatch.setattr(command_line, "_say", lambda *lines: said.extend(lines))
    monkeypatch.setattr(command_line, "_wait", lambda: None)
    before = {each: signal.getsignal(each) for each in STOPS}
    assert main(["serve", "--config", str(config)]) == 0
    for number, handler in before.items():
        signal.signal(number, handler)
    assert {"sums", "mine"} <= {line.partition(":")[0] for line in said}


@pytest.mark.parametrize("arguments", [["--config", "no/such/file.yaml"], ["--head-port", "66666"]])
def test_what_cannot_be_served_is_one_line(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "gym_mocks", "serve", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("gym-mocks: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", STOPS)
def test_a_start_that_waits_for_a_file_can_be_stopped(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {each: signal.getsignal(each) for each in STOPS}
    monkeypatch.setattr(MockGym, "add_config", lambda *_, **__: signal.raise_signal(number))
    try:
        assert main(["serve", "--config", "gym.yaml"]) == 0
        assert {signal.getsignal(each) for each in STOPS} == {signal.SIG_DFL}  # a second one would end it
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
