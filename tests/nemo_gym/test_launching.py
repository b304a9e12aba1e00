"""`--gym-env` on nemo-gym's own servers, and on small ones of its kind that go wrong when they are launched."""

import json
from pathlib import Path
from textwrap import dedent

import httpx
import psutil
import pytest

from gym_conformance.contract.policy_output import response
from gym_conformance.launch.env import find_envs
from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.launch.specification import Launch
from tests.launch.drills import NOBODY, gone

pytest_plugins = ["pytester"]

_APP = """
    from nemo_gym.base_resources_server import BaseVerifyResponse, SimpleResourcesServer

    class One(SimpleResourcesServer):
        async def verify(self, body):
            return BaseVerifyResponse(**body.model_dump(), reward=1.0)
"""
_YAML = """
    env:
      resources_servers:
        env:
          entrypoint: app.py
          domain: agent
"""


def _env(folder: Path, app: str = _APP, config: str = _YAML, more: str = "") -> Path:
    (folder / "env" / "configs").mkdir(parents=True)
    (folder / "env" / "app.py").write_text(dedent(app) + dedent(more))
    (folder / "env" / "configs" / "env.yaml").write_text(dedent(config))
    return folder / "env"


def _launch(folder: Path, python: str, *settings: str) -> LaunchedServer:
    [env] = find_envs([str(folder)], folder)
    return LaunchedServer(Launch(env, NOBODY, python, settings))


@pytest.mark.parametrize(
    ("more", "config", "needs"),
    [
        ("class Two(One):\n    pass\n", "", "to know its server class: app.py defines One, Two and runs none"),
        ("del One\n", "", "a server class: app.py defines no SimpleResourcesServer"),
        ("", "      size: ???\n", "the config key env.resources_servers.env.size: --gym-env-set"),
        ("", "      size: ${no_such_size}\n", "the config key no_such_size: --gym-env-set no_such_size=VALUE"),
        ("", "      other: {type: resources_servers, name: nobody}\n", "a server that its config refers to: "),
        ("import no_such_module_here\n", "", "the module no_such_module_here: "),
    ],
)
def test_why_it_does_not_start(tmp_path: Path, gym_python: str, more: str, config: str, needs: str) -> None:
    folder = _env(tmp_path, more=more, config=dedent(_YAML) + config)
    with pytest.raises(NotLaunched) as refused, _launch(folder, gym_python):
        pass
    assert refused.value.needs.startswith(needs)


def test_what_nemo_gym_refuses_of_a_data_set_is_told_and_the_server_judged(tmp_path: Path, gym_python: str) -> None:
    """Nobody could start any of its servers for a licence, which none of them reads."""
    config = dedent(_YAML) + (
        "agent:\n  responses_api_agents:\n    simple_agent:\n      entrypoint: app.py\n"
        "      resources_server: {type: resources_servers, name: env}\n"
        "      model_server: {type: responses_api_models, name: policy_model}\n"
        "      datasets:\n      - {name: a, type: train, jsonl_fpath: a.jsonl, license: My Own}\n"
    )
    with _launch(_env(tmp_path, config=config), gym_python) as server:
        assert "license: it cannot be 'My Own'" in server.not_accepted[0]


_ASKS = """
    from nemo_gym.base_resources_server import BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer

    class One(SimpleResourcesServer):
        async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
            reply = await self.server_client.get(server_name="table", url_path="/")
            return BaseVerifyResponse(**body.model_dump(), reward=float(reply.status < 500))

    if __name__ == "__main__":
        One.run_webserver()
"""


def test_a_server_that_it_asks_is_started_beside_it(tmp_path: Path, gym_python: str) -> None:
    """Nobody would answer otherwise, and each call that asks it would hang."""
    config = dedent(_YAML) + "      table: {type: resources_servers, name: table}\n"
    config += "table:\n  resources_servers:\n    table:\n      entrypoint: app.py\n      domain: agent\n"
    asked = _env(tmp_path / "resources_servers").with_name("table")
    asked.with_name("env").rename(asked)
    folder = _env(tmp_path / "resources_servers", app=_ASKS, config=config)
    body = {"responses_create_params": {"input": []}, "response": response([])}
    with _launch(folder, gym_python) as server:
        assert set(server.known) == {"env", "table"}
        assert httpx.post(f"{server.url}/verify", json=body, timeout=60).json()["reward"] == 1.0
        [table] = server.started_beside
        assert table.pid != server.pid
    assert gone(table.pid)
    asked.joinpath("app.py").write_text("import no_such_module_here")
    with pytest.raises(
        NotLaunched, match=r"^the server table, which it asks; that needs the module no_such_module_here"
    ):
        _launch(folder, gym_python).start()


def test_a_setting_mends_it(tmp_path: Path, gym_python: str) -> None:
    """The one class of an app.py that runs nothing is run; a model server needs no key, and the judge is our mock.

    Its `__file__` is absolute, as in `python app.py`, and a model that nobody declares is of a type that 0.7.0 knows.
    """
    config = dedent(_YAML) + "      size: ${size}\n      judge: {type: responses_api_models, name: judge}\n"
    config += (
        "judge:\n  responses_api_models:\n    vllm_model:\n      entrypoint: app.py\n      api_key: ${judge_key}\n"
    )
    more = "import os\nassert os.path.isabs(__file__)\n"
    with _launch(_env(tmp_path, config=config, more=more), gym_python, "size=3") as server:
        assert list(server.config["policy_model"]["responses_api_models"]) == ["vllm_model"]
        judge = server.config["judge"]["responses_api_models"]["vllm_model"]
        assert (judge["host"], judge["port"]) == NOBODY.policy
        assert server.config["head_server"]["port"] == NOBODY.head[1]
        assert server.launch.models == ("judge",)


def test_as_nemo_gym_starts_it_it_answers_and_ray_ends_with_it(gym_bundle: Path, gym_python: str) -> None:
    folder = gym_bundle / "resources_servers" / "example_single_tool_call"
    [env] = find_envs([str(folder)], folder)
    with LaunchedServer(Launch(env, NOBODY, gym_python, real=True)) as server:
        assert httpx.get(server.url).status_code == 200
        own = psutil.Process(server.pid)
        assert own.cmdline()[-1] == "app.py"
        guard = own.parent()
        assert guard is not None
        children = guard.children(recursive=True)
        assert any("raylet" in word for child in children for word in child.cmdline())
    assert all(gone(child.pid) for child in children)


def test_a_bundled_server_is_judged_from_its_folder(
    pytester: pytest.Pytester, gym_bundle: Path, gym_python: str
) -> None:
    folder = gym_bundle / "resources_servers" / "calendar"
    run = pytester.runpytest_subprocess(
        f"--gym-env={folder}",
        "--gym-profile=smoke",
        "--gym-python",
        gym_python,
        "--gym-report",
        "r.json",
        "-p",
        "no:cacheprovider",
        timeout=300,
    )
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    found = json.loads(Path("r.json").read_text())["findings"]
    assert {f["check"] for f in found if f["verdict"] == "fail" and f["level"] == "MUST"} == {"verify-degenerate"}
    assert {f["check"] for f in found if f["verdict"] == "untestable"} == set()


def test_a_judge_is_asked(pytester: pytest.Pytester, gym_bundle: Path, gym_python: str) -> None:
    folder = gym_bundle / "resources_servers" / "equivalence_llm_judge"
    arguments = ["-k", "judge-answers", "--gym-report", "r.json", "-p", "no:cacheprovider"]
    pytester.runpytest_subprocess(f"--gym-env={folder}", "--gym-python", gym_python, *arguments, timeout=300)
    found = [f for f in json.loads(Path("r.json").read_text())["findings"] if f["check"] == "judge-answers"]
    assert {f["subject"]: f["verdict"] for f in found}["yes"] == "pass"


def test_each_of_several_has_its_lock_in_its_folder(pytester: pytest.Pytester, gym_python: str) -> None:
    folders = [_env(pytester.path / name) for name in ("a", "b")]
    given = ["--gym-env=?/env", "--gym-python", gym_python, "--gym-lock", "gym.lock", "-p", "no:cacheprovider"]
    run = pytester.runpytest_subprocess(*given, "--gym-lock-update", "-k", "drift-lock", timeout=300)
    assert run.ret == pytest.ExitCode.OK
    run.stdout.fnmatch_lines(["2 locks are written."])
    assert [json.loads((folder / "gym.lock").read_text())["server"] for folder in folders] == [{}, {}]

    (folders[0] / "gym.lock").unlink()
    run = pytester.runpytest_subprocess(*given, timeout=60)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: --gym-lock '*/a/env/gym.lock': there is no such file; write it with *"])
