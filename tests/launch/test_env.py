"""What there is to launch, found without running any of it."""

import sys
from pathlib import Path

import pytest
import yaml

from gym_conformance.launch.env import BadConfig, Env, NoEnv, chained, find_envs, find_server, written
from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.launch.specification import Launch
from gym_conformance.launch.venv_recipe import read_recipe
from tests.launch.drills import NOBODY

_SERVER = "{name}:\n  resources_servers:\n    {inner}:\n      entrypoint: app.py\n"

#: A server of a YAML that takes the rest from another.
_AT_ONCE = "  resources_servers:\n    sums:\n      limit: 1\n"


def _env(folder: Path, **configs: str) -> Path:
    (folder / "configs").mkdir(parents=True)
    (folder / "app.py").touch()
    for name, text in configs.items():
        (folder / "configs" / f"{name}.yaml").write_text(text)
    return folder


def test_folders_globs_and_modules(tmp_path: Path) -> None:
    for name in ("b", "a"):
        _env(tmp_path / "envs" / name)
    (tmp_path / "envs" / "__pycache__").mkdir()
    found = find_envs(["envs/b", "envs/*", "pack.app:make.app"], tmp_path)
    assert [env.name for env in found] == ["b", "a", "pack.app.make.app"]
    assert found[2] == Env("pack.app.make.app", tmp_path, "pack.app:make.app")


def test_an_application_of_a_folder_has_its_rows_and_its_interpreter(tmp_path: Path) -> None:
    """So that several can be judged at once."""
    for path in ("a/main.py", "a/data/example.jsonl", "a/.venv/bin/python", "b/src/shop/web.py", "b/c/app.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    found = find_envs(["a/main:app", "b/shop.web:make", f"{tmp_path}/a/main:other"], tmp_path)
    assert [(env.name, env.folder, env.application) for env in found] == [
        ("a.main.app", tmp_path / "a", "main:app"),
        ("b.shop.web.make", tmp_path / "b", "shop.web:make"),
        ("a.main.other", tmp_path / "a", "main:other"),
    ]
    assert found[0].data == (tmp_path / "a" / "data" / "example.jsonl",)
    assert found[0].python == tmp_path / "a" / ".venv" / "bin" / "python"
    assert (found[1].data, found[1].python) == ((), None)
    with pytest.raises(NoEnv):
        find_envs(["b/c:server"], tmp_path)


def test_names_are_unique(tmp_path: Path) -> None:
    for parent in ("one", "two", "x/one"):
        _env(tmp_path / parent / "env")
    found = find_envs(["one/env", "two/env", "x/one/env"], tmp_path)
    assert [env.name for env in found] == ["one-env", "two-env", "one-env-2"]


def test_its_own_data_and_interpreter(tmp_path: Path) -> None:
    folder = _env(tmp_path / "env")
    assert find_envs(["."], folder)[0].data == ()
    for path in ("data/example.jsonl", ".venv/bin/python"):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).touch()
    [env] = find_envs(["."], folder)
    assert env.name == "env"
    assert env.data == (folder / "data" / "example.jsonl",)
    assert Launch(env, NOBODY).interpreter == str(folder / ".venv" / "bin" / "python")
    assert Launch(env, NOBODY, python="/bin/python").interpreter == "/bin/python"


def test_rows_that_lie_elsewhere_are_those_that_its_yaml_names(tmp_path: Path) -> None:
    folder = _env(tmp_path / "env")
    named = [{"type": kind, "jsonl_fpath": f"{kind}.jsonl"} for kind in ("train", "example", "validation")]
    (folder / "configs" / "env.yaml").write_text(yaml.safe_dump({"agent": {"datasets": named}}))
    assert find_envs(["."], folder)[0].data == ()
    (folder / "train.jsonl").touch()
    assert find_envs(["."], folder)[0].data == (folder / "train.jsonl",)
    (tmp_path / "validation.jsonl").touch()
    assert find_envs(["."], folder)[0].data == (
        folder / "train.jsonl",
    )  # a path starts in the env, where it stands alone
    (folder / "validation.jsonl").touch()
    assert find_envs(["."], folder)[0].data == (folder / "validation.jsonl",)
    (folder / "data").mkdir()
    (folder / "data" / "example.jsonl").touch()
    assert find_envs(["."], folder)[0].data == (folder / "data" / "example.jsonl",)


def test_an_env_without_an_app_py_is_what_its_yaml_runs(tmp_path: Path) -> None:
    folder = tmp_path / "envs" / "geo"
    (folder / "configs").mkdir(parents=True)
    config = folder / "configs" / "geo.yaml"
    config.write_text("geo:\n  resources_servers:\n    geo:\n      entrypoint: src/geo/server.py\n")
    with pytest.raises(NoEnv, match="no YAML whose `entrypoint` is there"):
        find_envs(["envs/geo"], tmp_path)
    (folder / "src" / "geo").mkdir(parents=True)
    (folder / "src" / "geo" / "server.py").touch()
    for given in ("envs/geo", "envs/*", "envs/geo/configs/geo.yaml"):
        [env] = find_envs([given], tmp_path)
        assert (env.name, env.folder, env.app) == ("geo", folder, folder / "src" / "geo" / "server.py")


def test_what_an_env_yaml_notes_is_taken_in_but_for_its_credentials(tmp_path: Path) -> None:
    folder = _env(tmp_path / "sums", sums=_SERVER.format(name="sums", inner="sums"))
    uses = "      url: ${service_url}\n      key: ${grader_api_key}\n"
    (folder / "configs" / "sums.yaml").write_text(_SERVER.format(name="sums", inner="sums") + uses)
    note = "service_url: http://a\ngrader_api_key: sk-1\npolicy_base_url: http://b\njudge: {a: 1}\nunset:\n"
    (folder / "env.yaml").write_text(note)
    [env] = find_envs(["."], folder)
    taken = Launch(env, NOBODY, network=True).specification(1)["overrides"]
    assert (taken["service_url"], taken["grader_api_key"]) == ("http://a", "sk-1")
    assert taken["policy_base_url"] != "http://b", "the mock stands for it"
    assert not {"judge", "unset"} & taken.keys()
    alone = Launch(env, NOBODY).specification(1)["overrides"]
    assert (alone["service_url"], alone["grader_api_key"]) == ("http://a", "made-up-credential")


def test_what_only_an_agent_must_be_given_is_made_up(tmp_path: Path) -> None:
    """`gym env start` asks for it, and nobody judges the agent."""
    agents = "".join(f"{name}:\n  responses_api_agents:\n    simple_agent: {{{value}}}\n" for name, value in _TURNS)
    folder = _env(tmp_path / "sums", sums=_SERVER.format(name="sums", inner="sums") + "      size: ???\n" + agents)
    overrides = Launch(find_envs(["."], folder)[0], NOBODY).specification(1)["overrides"]
    assert overrides["open"] == {"responses_api_agents": {"simple_agent": {"max_steps": "none"}}}
    assert "set" not in overrides
    assert "size" not in overrides["sums"]["resources_servers"]["sums"], "the server itself reads it"


_TURNS = (("open", 'entrypoint: app.py, max_steps: "???"'), ("set", "entrypoint: app.py, max_steps: 5"))


def test_a_yaml_that_asks_for_a_credential_of_the_environment_gets_a_made_up_one(tmp_path: Path) -> None:
    folder = _env(tmp_path / "sums", sums=_SERVER.format(name="sums", inner="sums"))
    uses = "      key: ${oc.env:SUMS_API_KEY}\n      home: ${oc.env:SUMS_HOME}\n      size: ${oc.env:SUMS_TOKEN,5}\n"
    agent = "agent:\n  responses_api_agents:\n    simple_agent:\n      home: ${oc.env:AGENT_HOME}\n"
    (folder / "configs" / "sums.yaml").write_text(_SERVER.format(name="sums", inner="sums") + uses + agent)
    told = Launch(find_envs(["."], folder)[0], NOBODY).specification(1)["environment"]
    assert set(told) == {"SUMS_API_KEY", "AGENT_HOME"}, "what is no credential, and its own, is asked for"


def test_the_settings_in_its_files_are_known_but_for_what_refers_to_others(tmp_path: Path) -> None:
    folder = _env(tmp_path / "sums", sums=_SERVER.format(name="sums", inner="sums"))
    uses = "      key: ${sums_api_key}\n      token: abc-1\n"
    (folder / "configs" / "sums.yaml").write_text(_SERVER.format(name="sums", inner="sums") + uses)
    (folder / "env.yaml").write_text("sums_api_key: abc-2\n")
    (folder / ".env").write_text('A_KEY="abc 3" # mine\n# B_KEY=abc-4\n')
    found = dict(written(find_envs(["."], folder)[0]))
    assert found == {"entrypoint": "app.py", "token": "abc-1", "sums_api_key": "abc-2", "A_KEY": "abc 3"}


def test_a_yaml_of_an_env_is_an_env_of_its_own(tmp_path: Path) -> None:
    """Of a folder with several, each can be judged."""
    folder = _env(tmp_path / "resources_servers" / "sums", sums=_SERVER.format(name="sums", inner="sums"))
    for name in ("easy", "hard"):
        (folder / "configs" / f"{name}.yaml").write_text(_SERVER.format(name=f"sums_{name}", inner="sums"))
    hard = folder / "configs" / "hard.yaml"
    own = {name: folder / "data" / f"{name}.jsonl" for name in ("example", "hard")}
    (folder / "data").mkdir()
    for rows in own.values():
        rows.touch()
    named = {"type": "example", "jsonl_fpath": "resources_servers/sums/data/hard.jsonl"}
    hard.write_text(hard.read_text() + yaml.safe_dump({"agent": {"datasets": [named]}}))
    (env,) = find_envs([str(hard)], tmp_path)
    assert env.data == (own["hard"],)
    assert find_envs([str(folder), str(folder / "configs" / "easy.yaml")], tmp_path)[0].data == (own["example"],)
    assert (env.name, env.folder, env.home, env.config, env.root) == ("hard", folder, folder, hard, tmp_path)
    assert Launch(env, NOBODY).specification(1)["instance"] == "sums_hard"
    both = find_envs(["resources_servers/sums/configs/[eh]*.yaml", str(hard), str(folder)], tmp_path)
    assert [each.name for each in both] == ["easy", "hard", "sums"]


def _several(folder: Path) -> Path:
    """A folder whose YAML declares a server and another beside it, each with an agent and rows of its own."""
    names = ("easy", "hard")
    declared = "".join(_SERVER.format(name=name, inner=folder.name) for name in names)
    agents = {
        f"{name}_agent": {
            "responses_api_agents": {
                "simple_agent": {
                    "resources_server": {"type": "resources_servers", "name": name},
                    "datasets": [{"type": "example", "jsonl_fpath": f"data/{name}.jsonl"}],
                }
            }
        }
        for name in names
    }
    _env(folder, **{folder.name: declared + yaml.safe_dump(agents)})
    (folder / "data").mkdir()
    for name in ("example", *names):
        (folder / "data" / f"{name}.jsonl").touch()
    return folder


def test_of_several_servers_the_first_is_judged_or_the_one_that_is_named(tmp_path: Path) -> None:
    folder = _several(tmp_path / "sums")
    (first,) = find_envs(["sums"], tmp_path)
    assert (first.configured.name, [each.name for each in first.others]) == ("easy", ["hard"])
    for given in ("sums:hard", f"{folder}/configs/sums.yaml:hard", f"{folder}:hard"):
        (hard,) = find_envs([given], tmp_path)
        assert (hard.name, hard.configured.name, hard.others) == ("hard", "hard", ())
        assert hard.data == (folder / "data" / "hard.jsonl",)
        assert Launch(hard, NOBODY).specification(1)["instance"] == "hard"
    assert [env.name for env in find_envs(["sums", "sums:hard", "sums:hard"], tmp_path)] == ["sums", "hard"]
    with pytest.raises(NoEnv, match=r"declares the server harsh; what it declares is easy, hard"):
        find_envs(["sums:harsh"], tmp_path)


def test_servers_of_files_none_of_which_bears_the_folders_name(tmp_path: Path) -> None:
    """The first by name is judged, and the others are known; where one bears it, it is meant."""
    written = {name: _SERVER.format(name=name, inner="sums") for name in ("b", "a")}
    folder = _env(tmp_path / "sums", **written)
    (env,) = find_envs(["sums"], tmp_path)
    assert (env.configured.name, [each.name for each in env.others]) == ("a", ["b"])
    (env,) = find_envs(["sums/configs/a.yaml"], tmp_path)
    assert env.others == (), "it was given"
    (folder / "configs" / "sums.yaml").write_text(_SERVER.format(name="c", inner="sums"))
    (env,) = find_envs(["sums"], tmp_path)
    assert (env.configured.name, env.others) == ("c", ())


def test_servers_with_entry_points_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    declared = [f"{name}:\n  resources_servers:\n    {name}:\n      entrypoint: {name}/main.py\n" for name in "ab"]
    (tmp_path / "repo" / "gym.yaml").write_text("".join(declared))
    for name in "ab":
        (tmp_path / "repo" / name).mkdir()
        (tmp_path / "repo" / name / "main.py").touch()
    first, second = find_envs(["repo", "repo:b"], tmp_path)
    assert (first.configured.name, [each.name for each in first.others]) == ("a", ["b"])
    assert second.app == tmp_path / "repo" / "b" / "main.py"


def test_a_module_in_a_folder_is_a_module(tmp_path: Path) -> None:
    """`weather:app` is an attribute of a package, though the folder may be an env as well."""
    folder = _env(tmp_path / "weather", weather=_SERVER.format(name="mine", inner="weather"))
    with pytest.raises(NoEnv, match="declares the server app"):
        find_envs(["weather:app"], tmp_path)
    (folder / "__init__.py").touch()
    assert find_envs(["weather:app"], tmp_path)[0].application == "weather:app"
    assert find_envs(["weather:mine"], tmp_path)[0].server == "mine"


def test_an_environment_that_declares_servers_of_several_folders(tmp_path: Path) -> None:
    for name in ("one", "two"):
        _env(tmp_path / "resources_servers" / name)
    home = tmp_path / "environments" / "both"
    home.mkdir(parents=True)
    (home / "config.yaml").write_text("".join(_SERVER.format(name=f"{name}_1", inner=name) for name in ("one", "two")))
    first, second = find_envs(["environments/both", "environments/both:two_1"], tmp_path)
    assert (first.folder.name, [each.name for each in first.others]) == ("one", ["two_1"])
    assert (second.folder.name, second.configured.name, second.others) == ("two", "two_1", ())


@pytest.mark.parametrize("given", ["empty", "nothing*", "file", "missing"])
def test_no_env(tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(NoEnv, match=r"app\.py|folder"):
        find_envs([given], tmp_path)


def test_the_server_of_its_name_in_the_file_of_its_name(tmp_path: Path) -> None:
    judge = "      judge:\n        model: {type: responses_api_models, name: judge_model}\n"
    own = _SERVER.format(name="mine", inner="env") + judge
    folder = _env(tmp_path / "env", a=_SERVER.format(name="other", inner="env"), env=own)
    server = find_server(folder)
    assert (server.name, server.inner, server.models) == ("mine", "env", ("judge_model",))


def test_a_server_of_another_name(tmp_path: Path) -> None:
    folder = _env(tmp_path / "repo", a="policy: 1\n", b=_SERVER.format(name="mine", inner="env"))
    assert find_server(folder).name == "mine"


_PLAYS = (
    "plays:\n  environment_servers:\n    {inner}:\n      entrypoint: app.py\n"
    "      agent_server:\n        type: responses_api_agents\n        name: ???\n"
)


@pytest.mark.parametrize(
    ("parent", "others", "inner", "name"),
    [
        ("environment_servers", "", "env", "plays"),
        ("environment_servers", _SERVER.format(name="mine", inner="env"), "env", "plays"),
        ("resources_servers", _SERVER.format(name="mine", inner="env"), "env", "mine"),
        ("resources_servers", _SERVER.format(name="mine", inner="env"), "legacy_agent", "mine"),
        ("repo", _SERVER.format(name="mine", inner="other"), "legacy_agent", "mine"),
        ("repo", "", "env", "plays"),
    ],
)
def test_environment_servers_beside_resources_servers(
    tmp_path: Path, parent: str, others: str, inner: str, name: str
) -> None:
    """The YAML of most resources servers of 0.7.0 declares an environment server that relays to their agent."""
    folder = _env(tmp_path / parent / "env", env=_PLAYS.format(inner=inner) + others)
    server = find_server(folder)
    assert (server.name, server.group) == (
        name,
        "environment_servers" if name == "plays" else "resources_servers",
    )
    assert server.models == (("???",) if name == "plays" else ()), "whom it asks is a mock"
    root = tmp_path if parent.endswith("servers") else folder
    assert find_envs([str(folder)], tmp_path)[0].root == root


def test_an_environment_whose_server_lives_elsewhere(tmp_path: Path) -> None:
    """`environments/NAME` of nemo-gym 0.7.0: a config.yaml and rows; several may share a server."""
    server = _env(tmp_path / "resources_servers" / "sums", sums=_SERVER.format(name="sums", inner="sums"))
    for name in ("easy", "sums"):
        home = tmp_path / "environments" / name
        (home / "data").mkdir(parents=True)
        (home / "data" / "example.jsonl").touch()
        (home / "config.yaml").write_text(_PLAYS.format(inner="relay") + _SERVER.format(name=f"{name}_1", inner="sums"))
    _env(tmp_path / "environment_servers" / "relay")
    (tmp_path / "environments" / "lost").mkdir()
    (tmp_path / "environments" / "lost" / "config.yaml").write_text(_SERVER.format(name="lost", inner="lost"))
    found = find_envs(["environments/*", "resources_servers/sums"], tmp_path)
    assert [env.name for env in found] == ["easy", "environments-sums", "resources_servers-sums"]
    assert {env.folder for env in found} == {server}
    easy = found[0]
    assert easy.root == tmp_path
    assert easy.data == (tmp_path / "environments" / "easy" / "data" / "example.jsonl",)
    specification = Launch(easy, NOBODY).specification(1)
    assert (specification["instance"], specification["group"]) == ("easy_1", "resources_servers")
    overrides = specification["overrides"]
    assert overrides["config_paths"] == [str(tmp_path / "environments" / "easy" / "config.yaml")]
    assert overrides["easy_1"] == {"resources_servers": {"sums": {"host": "127.0.0.1", "port": 1, "num_workers": 1}}}
    with pytest.raises(NoEnv, match=r"no config\.yaml that names a server of its repo"):
        find_envs(["environments/lost"], tmp_path)


def test_a_benchmark_takes_its_server_from_files_that_it_names(tmp_path: Path) -> None:
    """`benchmarks/NAME` of nemo-gym 0.7.0: most name another env's YAML, and inherit its instances under new names."""
    judge = "      judge:\n        type: responses_api_models\n        name: judge\n"
    base = _SERVER.format(name="sums", inner="sums") + judge
    server = _env(tmp_path / "resources_servers" / "sums", sums=base)
    inherits = "hard_sums:\n  _inherit_from: sums\n"
    written = {"chained": "", "hard": inherits, "circular": "", "lost": "hard_sums:\n  _inherit_from: sums\n"}
    for name, text in written.items():
        home = tmp_path / "benchmarks" / name
        home.mkdir(parents=True)
        paths = ["benchmarks/circular/config.yaml"] if name == "circular" else []
        paths += [] if name == "lost" else ["resources_servers/sums/configs/sums.yaml", "not/there.yaml"]
        (home / "config.yaml").write_text(f"config_paths: {paths}\n{text}")
    found = find_envs(["benchmarks/*"], tmp_path)
    assert [(env.name, env.folder, env.root) for env in found] == [
        (name, server, tmp_path) for name in ("chained", "circular", "hard")
    ]
    servers = {env.name: find_server(env.folder, env.config) for env in found}
    assert {name: (one.name, one.models) for name, one in servers.items()} == {
        "chained": ("sums", ("judge",)),
        "circular": ("sums", ("judge",)),
        "hard": ("hard_sums", ("judge",)),
    }
    declared = chained(servers["hard"].path, tmp_path)
    assert declared["hard_sums"]["resources_servers"] == yaml.safe_load(base)["sums"]["resources_servers"]
    assert "sums" not in declared, "nemo-gym drops what is inherited from"


def test_files_that_name_each_other_many_times_are_read_once(tmp_path: Path) -> None:
    """2,000 deep, each naming the next one three times, and the first one again; what is nearer has precedence."""
    for at in range(2_000):
        (tmp_path / f"{at}.yaml").write_text(
            f"config_paths: [{at + 1}.yaml, 0.yaml, {at + 1}.yaml, {at + 1}.yaml]\na: {at}\n"
        )
    (tmp_path / "2000.yaml").write_text("a: 2000\nb: 1\n")
    declared = chained(tmp_path / "0.yaml", tmp_path)
    assert (declared["a"], declared["b"]) == (0, 1)


def test_of_servers_that_inherit_the_heir_is_judged_and_a_copy_leaves_both(tmp_path: Path) -> None:
    """nemo-gym moves an instance to the one that inherits from it: what it was called is unknown then."""
    both = _SERVER.format(name="easy", inner="sums") + "      domain: math\nhard:\n  {}: easy\n" + _AT_ONCE
    folder = _env(tmp_path / "sums", sums=both.format("_inherit_from"))
    (env,) = find_envs([str(folder)], tmp_path)
    assert (env.configured.name, env.others) == ("hard", ())
    (folder / "configs" / "sums.yaml").write_text(both.format("_copy"))
    assert [env.configured.name, *(other.name for other in env.others)] == ["easy", "hard"]
    declared = chained(env.configured.path, tmp_path)
    assert declared["hard"]["resources_servers"]["sums"] == {"entrypoint": "app.py", "domain": "math", "limit": 1}


def test_a_yaml_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """One that is half written, or a template, is nothing to the server of another."""
    folder = _env(tmp_path / "sums", sums=_SERVER.format(name="sums", inner="sums"), hard="a: [")
    assert find_server(folder).name == "sums"
    (folder / "configs" / "sums.yaml").write_text("a: [")
    with pytest.raises(BadConfig, match=r"sums\.yaml cannot: line 1"):
        find_server(folder)


def test_a_server_in_a_package_of_its_own(tmp_path: Path) -> None:
    """Its YAML may lie beside it; it is imported from where the package is, and what that requires is found there."""
    folder = tmp_path / "repo" / "src" / "games" / "chess"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent):
        (each / "__init__.py").touch()
    (folder / "app.py").touch()
    (folder / "chess.yaml").write_text(_SERVER.format(name="chess_1", inner="chess"))
    (env,) = find_envs([str(folder)], tmp_path)
    assert env.root == tmp_path / "repo" / "src"
    assert env.project == folder
    (tmp_path / "repo" / "pyproject.toml").write_text('[project]\nname = "games"\ndependencies = ["roman"]\n')
    assert env.project == tmp_path / "repo"
    assert "roman" in read_recipe(env, "", "").requirements
    assert find_server(folder).name == "chess_1"


@pytest.mark.parametrize(
    ("configs", "needs"),
    [
        ({}, r"a YAML in configs/ that declares resources_servers\.env; there is no file"),
        ({"a": "agent: {responses_api_agents: {}}"}, "none of 1 files does"),
        ({"a": "- 1"}, "none of 1 files does"),
        ({"a": "a: b: c"}, r"a YAML that can be read; a\.yaml cannot"),
    ],
)
def test_no_yaml(tmp_path: Path, configs: dict[str, str], needs: str) -> None:
    folder = _env(tmp_path / "env", **configs)
    with pytest.raises(BadConfig, match=needs):
        find_server(folder)
    launch = Launch(Env("env", folder), NOBODY, python=sys.executable)
    with pytest.raises(NotLaunched, match=needs), LaunchedServer(launch):
        pass


@pytest.mark.parametrize(
    ("app", "why"), [(b"def (:", "line 1: invalid syntax"), (b"a\0b", "null bytes"), (b"\xe9 = 1", "can't decode byte")]
)
def test_an_app_that_python_cannot_read_is_told_before_a_yaml_is_missed(tmp_path: Path, app: bytes, why: str) -> None:
    """It may be of another framework, and saved in the middle of a change."""
    folder = _env(tmp_path / "env")
    (folder / "app.py").write_bytes(app)
    with pytest.raises(BadConfig, match=f"an app.py that Python can read; .*{why}"):
        find_server(folder)


@pytest.mark.parametrize(
    ("entry", "places", "found"),
    [
        ("table: {entrypoint: app.py}", ["resources_servers/table/app.py"], "resources_servers/table"),
        ("env: {entrypoint: app.py}", [], "resources_servers/env"),
        ("other: {entrypoint: table.py}", ["resources_servers/env/table.py"], "resources_servers/env"),
        ("table: {entrypoint: app.py}", [], ""),
    ],
)
def test_the_servers_that_it_asks(tmp_path: Path, entry: str, places: list[str], found: str) -> None:
    """In a folder of its kind, as NeMo Gym starts it, or in the env's own."""
    for place in ("resources_servers/env/app.py", "resources_servers/env/configs/env.yaml", *places):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(
            "env:\n  resources_servers:\n    env:\n      entrypoint: app.py\n"
            "      asked: {type: resources_servers, name: second}\n"
            f"second:\n  resources_servers:\n    {entry}\n"
        )
    [env] = find_envs([str(tmp_path / "resources_servers/env")], tmp_path)
    assert env.asked({"second"}) == ()
    if found:
        [asked] = env.asked()
        assert (asked.folder, asked.server) == (tmp_path / found, "second")
    else:
        with pytest.raises(
            BadConfig,
            match=r"whose folder resources_servers/table is not here.*second\.resources_servers\.table\.port=",
        ):
            env.asked()


_ROW = '{"responses_create_params": {"input": []}}\n'
_SERVES = "from fastapi import FastAPI\n%s\n@app.post('/verify')\ndef verify(): ...\n"


@pytest.mark.parametrize(
    ("files", "application"),
    [
        ({"app/__init__.py": "", "app/main.py": _SERVES % "app = FastAPI()"}, "app.main:app"),
        ({"app.py": _SERVES % "app: FastAPI = fastapi.FastAPI(title='x')"}, "app:app"),
        ({"src/shop/web.py": _SERVES % "def create_app(config='x'):\n  app = FastAPI()"}, "shop.web:create_app"),
        ({"main.py": _SERVES % "application = FastAPI()", "factory.py": "def make_app(): ..."}, "main:application"),
        ({"main.py": _SERVES % "app = FastAPI()", "tests/conftest.py": "app = FastAPI()", "odd.py": "("}, "main:app"),
    ],
)
def test_a_folder_of_another_framework_is_judged_by_its_one_application(
    tmp_path: Path, files: dict[str, str], application: str
) -> None:
    for name, text in files.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(text)
    [env] = find_envs(["shop"], tmp_path)
    assert (env.name, env.folder, env.application) == ("shop", tmp_path / "shop", application)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"a.py": _SERVES % "app = FastAPI()", "b.py": "api = Flask()"},
            "several applications.*--gym-env shop/a:app, --gym-env shop/b:api",
        ),
        ({"a.py": "app = FastAPI()"}, "no app.py"),
        ({"envs/one/app.py": "", "envs/two/app.py": ""}, r"its envs are envs/\*"),
    ],
)
def test_what_a_folder_might_mean_is_named(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, text in files.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(text)
    with pytest.raises(NoEnv, match=said):
        find_envs(["shop"], tmp_path)


@pytest.mark.parametrize("place", ["config/env.yml", "conf/env/one.yaml", "env.yml", "configs/env.yml"])
def test_a_yaml_may_lie_anywhere_in_an_env(tmp_path: Path, place: str) -> None:
    for name in ("app.py", "docker-compose.yaml", "environment.yml", place):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(
            "name: other\n" if name != place else "one:\n  resources_servers:\n    kind: {entrypoint: app.py}\n"
        )
    [env] = find_envs([str(tmp_path)], tmp_path)
    assert (env.configured.name, env.configured.path) == ("one", tmp_path / place)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["train.jsonl", "val.jsonl", "val_rollouts.jsonl"], "val.jsonl"),
        (["splits/train.jsonl", "splits/test.jsonl"], "splits/test.jsonl"),
        (["notes.jsonl"], ""),
    ],
)
def test_rows_may_lie_anywhere_in_its_data(tmp_path: Path, files: list[str], found: str) -> None:
    """What holds no rows, or what was recorded of them, is none of them."""
    (tmp_path / "web.py").write_text(_SERVES % "app = FastAPI()")
    for name in files:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        recorded = _ROW.replace("}}", '}, "response": {}}')
        (tmp_path / "data" / name).write_text({"notes.jsonl": "{}\n", "val_rollouts.jsonl": recorded}.get(name, _ROW))
    [env] = find_envs([str(tmp_path)], tmp_path)
    assert env.data == ((tmp_path / "data" / found,) if found else ())
