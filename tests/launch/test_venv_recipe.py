"""What is installed for an env is what its folder asks for, as `gym env start` reads it."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gym_conformance.launch.env import Env
from gym_conformance.launch.other_requirements import pep440
from gym_conformance.launch.venv_recipe import COPIES, BadRequirements, VenvRecipe, read_recipe

_OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


def _recipe(folder: Path, files: Mapping[str, str], *, application: str = "", nemo: str = "") -> VenvRecipe:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return read_recipe(Env("env", folder, application), "", nemo)


def _python(recipe: VenvRecipe) -> str:
    return _OWN if recipe.python == sys.executable else recipe.python


@pytest.mark.parametrize(
    ("text", "nemo", "requirements"),
    [
        ("", "", ["nemo-gym"]),
        ("roman", "0.4.0", ["nemo-gym==0.4.0", "roman"]),
        ("nemo-gym==0.4.0\nroman  # numerals", "", ["nemo-gym==0.4.0", "roman"]),
        ("NeMo_Gym>=0.5", "0.6.0", ["nemo-gym==0.6.0"]),
        ("nemo-gym[sandbox]>=0.5", "0.6.0", ["nemo-gym[sandbox]==0.6.0"]),
        ("-e nemo-gym[dev] @ ../../\nroman", "", ["nemo-gym", "roman"]),
        ("-e nemo-gym[dev, sandbox] @ ../..", "0.7.0", ["nemo-gym[sandbox]==0.7.0"]),
        ("--extra-index-url https://a.example/simple\nroman \\\n  >=5", "0.4.0",
         ["nemo-gym==0.4.0", "--extra-index-url https://a.example/simple", "roman >=5"]),
        ("git+https://a.example/b.git@1\nc @ https://a.example/c.whl", "0.4.0",
         ["nemo-gym==0.4.0", "git+https://a.example/b.git@1", "c @ https://a.example/c.whl"]),
        ("\ufeff# from Windows\r\nnemo-gym==0.4.0\r\n", "", ["nemo-gym==0.4.0"]),
        ("nemo-gym==0.4.0\nroman==5 \\\n    --hash=sha256:ab \\\n    --hash=sha256:cd", "",
         ["nemo-gym==0.4.0", "roman==5 --hash=sha256:ab --hash=sha256:cd"]),
    ],
)  # fmt: skip
def test_requirements(tmp_path: Path, text: str, nemo: str, requirements: list[str]) -> None:
    assert list(_recipe(tmp_path, {"requirements.txt": text}, nemo=nemo).requirements) == requirements


@pytest.mark.parametrize(
    ("files", "python"),
    [
        ({"requirements.txt": "nemo-gym==0.4.0"}, "3.12"),
        ({"requirements.txt": "nemo-gym<0.5"}, "3.12"),
        ({"requirements.txt": "nemo-gym>=0.3"}, "3.13"),
        ({"requirements.txt": "nemo-gym>=0.9"}, "3.13"),
        ({"requirements.txt": "nemo-gym>=0.3", ".python-version": "3.12.4\n"}, "3.12"),
        ({"pyproject.toml": "[project]\nname = 'a'\ndependencies = ['nemo-gym']\nrequires-python = '<3.13'"}, "3.12"),
        ({"pyproject.toml": "[project]\nname = 'a'\ndependencies = ['nemo-gym']"}, "3.13"),
    ],
)
def test_the_python_that_is_asked_for(tmp_path: Path, files: Mapping[str, str], python: str) -> None:
    assert _python(_recipe(tmp_path, files)) == python


def test_an_env_of_a_wheel_is_judged_with_that_release(tmp_path: Path) -> None:
    (tmp_path / "nemo_gym-0.4.0.dist-info").mkdir()
    recipe = _recipe(tmp_path / "resources_servers" / "calendar", {"requirements.txt": "-e nemo-gym[dev] @ ../../"})
    assert recipe.requirements == ("nemo-gym==0.4.0",)
    assert _python(recipe) == "3.12"


def test_an_env_of_a_clone_needs_what_the_clone_does(tmp_path: Path) -> None:
    """The clone itself is on the launched server's path; building it would write there."""
    project = (
        "[project]\nname = 'nemo-gym'\ndependencies = ['ray']\noptional-dependencies = {sandbox = ['e2b'], dev = ['x']}"
    )
    (tmp_path / "pyproject.toml").write_text(project)
    text = "-e nemo-gym[dev,sandbox] @ ../../\nroman"
    recipe = _recipe(tmp_path / "resources_servers" / "calendar", {"requirements.txt": text})
    assert recipe.requirements == ("ray", "e2b", "roman")
    assert (
        _recipe(tmp_path / "resources_servers" / "calendar", {}, nemo="0.7.0").requirements[0]
        == "nemo-gym[sandbox]==0.7.0"
    )


@pytest.mark.parametrize(
    ("line", "said", "left", "kept"),
    [
        ("a @ git+https://h/o/a.git@v1", "'https://h/o/a.git/': Could not resolve host: h", True, ""),
        ("git+ssh://git@h/o/a.git@feature/x#egg=a", "git fetch 'ssh://git@h/o/a.git'", True, ""),
        ("nemo-gym[dev] @ git+https://h/o/Gym.git@main", "fetch 'https://h/o/Gym.git'", True, "nemo-gym[dev]"),
        ("a @ git+https://h/o/ab.git", "https://h/o/a", False, ""),
        ("a>=1", "Failed to fetch: https://pypi.org/simple/a/", False, ""),
    ],
)
def test_what_could_not_be_fetched(tmp_path: Path, line: str, said: str, left: bool, kept: str) -> None:
    """Only what uv names is left out; a release of nemo-gym's stands for a commit of it."""
    recipe = _recipe(tmp_path, {"requirements.txt": f"six\n{line}\n"})
    fewer = recipe.without_unfetched(f"error: Git operation failed\n  cause: {said}")
    assert (bool(fewer.left_out), fewer != recipe) == (left, left)
    instead = [kept] if left else [line]
    assert [each for each in fewer.requirements if each not in ("six", "nemo-gym")] == [
        each for each in instead if each
    ]


def test_an_application_needs_a_server_and_no_nemo_gym(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, {"requirements.txt": "roman"}, application="drill:app")
    assert recipe.requirements == ("roman", "uvicorn")
    assert recipe.python == sys.executable


def test_an_application_may_have_both_files(tmp_path: Path) -> None:
    """It is NeMo Gym that takes only one of them."""
    settings = "[build-system]\nrequires = ['setuptools']\n"
    assert _recipe(
        tmp_path, {"requirements.txt": "roman", "pyproject.toml": settings}, application="a:app"
    ).requirements == (
        "roman",
        "uvicorn",
    )
    project = "[project]\nname = 'a'\ndependencies = ['xxhash']\noptional-dependencies = {web = ['idna'], dev = ['x']}"
    files = {"requirements.txt": "-e .[web]\nroman", "pyproject.toml": project}
    assert _recipe(tmp_path, files, application="a:app").requirements == ("idna", "roman", "xxhash", "uvicorn")


def test_files_that_name_others(tmp_path: Path) -> None:
    files = {
        "requirements.txt": "nemo-gym==0.4.0\n-r more.txt\n-c limits.txt",
        "more.txt": "--requirement=most.txt",
        "most.txt": "roman",
        "limits.txt": "roman<6",
        "overrides.txt": "click==8.1",
    }
    recipe = _recipe(tmp_path, files)
    assert recipe.requirements == ("nemo-gym==0.4.0", "roman")
    assert (recipe.constraints, recipe.overrides) == (("roman<6",), ("click==8.1",))


def test_the_key_changes_with_what_goes_in(tmp_path: Path) -> None:
    files = {"requirements.txt": "nemo-gym==0.4.0\n-c limits.txt", "limits.txt": "roman<6"}
    key = _recipe(tmp_path, files).key
    assert _recipe(tmp_path, files).key == key
    assert _recipe(tmp_path / "elsewhere", files).key == key
    assert _recipe(tmp_path, files | {"limits.txt": "roman<5"}).key != key
    assert _recipe(tmp_path, {"uv.toml": "prerelease = 'allow'"}).key != key
    assert read_recipe(Env("env", tmp_path), "/usr/bin/python3.12", "").key != key


def test_what_uv_takes_from_elsewhere_is_not_taken_from_the_index(tmp_path: Path) -> None:
    """As nemo-gym's own code_fim: PyPI has another package of that name."""
    (tmp_path / "lib").mkdir()
    text = """
        [project]
        name = "a"
        dependencies = ["nemo-gym==0.4.0", "Grader[fast]>=1; python_version > '3'", "plain", "wheel-1", "lib"]
        [tool.uv.sources]
        nemo-gym = { path = "../..", editable = true }
        grader = { git = "https://a.example/g.git", tag = "v1", subdirectory = "py" }
        wheel_1 = { url = "https://a.example/w.whl" }
        lib = { path = "lib" }
    """
    assert _recipe(tmp_path, {"pyproject.toml": text}).requirements == (
        "nemo-gym==0.4.0",
        "grader[fast] @ git+https://a.example/g.git@v1#subdirectory=py ; python_version > '3'".replace("'", '"'),
        "plain",
        "wheel-1 @ https://a.example/w.whl",
        f"{COPIES}/lib",
    )


def test_a_folder_of_the_env_is_built_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "pyproject.toml").write_text("[project]")
    recipe = _recipe(tmp_path, {"requirements.txt": "nemo-gym==0.4.0\n-e ./lib[fast]"})
    assert recipe.requirements == ("nemo-gym==0.4.0", f"{COPIES}/lib[fast]")
    assert [name for name, _ in recipe.folders] == ["lib"]
    (tmp_path / "lib" / "lib.py").write_text("x = 1")
    assert read_recipe(Env("env", tmp_path), "", "").key != recipe.key


def test_what_a_workspace_shares_is_built_in_copies_and_never_looked_for_in_an_index(tmp_path: Path) -> None:
    """Whoever took its name there would be installed."""
    packages = {"shared": ["acme-core", "xxhash"], "core": ["grader"]}
    for name, wanted in packages.items():
        (tmp_path / "libs" / name).mkdir(parents=True)
        (tmp_path / "libs" / name / "pyproject.toml").write_text(
            f"[project]\nname = 'Acme_{name}'\ndependencies = {wanted}\n[tool.uv.sources]\n"
            "acme-core = { workspace = true }\ngrader = { git = 'https://a.example/g.git' }\n"
        )
    (tmp_path / "pyproject.toml").write_text("[tool.uv.workspace]\nmembers = ['libs/*', 'envs/*']")
    text = "[project]\ndependencies = ['nemo-gym==0.4.0', {}]\n[tool.uv.sources]\n{}"
    member = text.format("'acme-shared[x]'", "acme-shared = { workspace = true }")
    copies = (f"{COPIES}/__/__/libs/shared[x]", f"{COPIES}/__/__/libs/core")
    recipe = _recipe(tmp_path / "envs" / "a", {"pyproject.toml": member})
    assert recipe.requirements == ("nemo-gym==0.4.0", *copies, "grader @ git+https://a.example/g.git")
    assert [where for where, _ in recipe.folders] == ["../../libs/shared", "../../libs/core"]
    beside = text.format("'acme-shared[x]'", "acme-shared = { path = '../../libs/shared', editable = true }")
    assert _recipe(tmp_path / "envs" / "b", {"pyproject.toml": beside}).requirements == recipe.requirements
    absent = text.format("'acme-none'", "acme-none = { workspace = true }")
    with pytest.raises(BadRequirements, match="no member of one above has that name"):
        _recipe(tmp_path / "envs" / "c", {"pyproject.toml": absent})


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"requirements.txt": "./package"}, "'./package' is a file, the env's own folder, or not there"),
        ({"requirements.txt": "-e ."}, "'.' is a file, the env's own folder, or not there"),
        ({"requirements.txt": "a @ file:///srv/a"}, "'a @ file:///srv/a' is a file, the env's own folder, "),
        ({"requirements.txt": "no requirement !!"}, "'no requirement !!': Expected "),
        ({"requirements.txt": "-r none.txt"}, "none.txt is not there"),
        ({"requirements.txt": "-r requirements.txt"}, "requirements.txt: more than 10 files that name each other"),
        ({"pyproject.toml": "["}, "pyproject.toml: "),
        ({"pyproject.toml": "project = 1"}, "its `project` is not a table"),
        ({"environment.yml": "dependencies: [python=what]"}, "'==what.*' names no versions of Python"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, files: Mapping[str, str], why: str) -> None:
    with pytest.raises(BadRequirements) as bad:
        _recipe(tmp_path, files)
    assert why in str(bad.value)


_DYNAMIC = "[project]\nname = 'a'\ndynamic = ['dependencies']\nrequires-python = '==3.12.*'"
_POETRY = "[tool.poetry.dependencies]\npython = '^3.11,<3.13'\nroman = '^5'"


@pytest.mark.parametrize(
    ("files", "built", "python"),
    [
        ({"pyproject.toml": _DYNAMIC}, "pyproject.toml", "3.12"),
        ({"pyproject.toml": "[tool.poetry.dependencies]\npython = '^3.11'\nroman = '^5'"}, "pyproject.toml", "3.13"),
        ({"pyproject.toml": "[tool.poetry.dependencies]\npython = '>=3.11,<3.13'"}, "pyproject.toml", "3.12"),
        ({"pyproject.toml": "[build-system]\nrequires = ['setuptools']"}, "pyproject.toml", "3.13"),
        ({"setup.py": "setup(python_requires='<3.13', install_requires=['roman'])"}, "setup.py", "3.12"),
        ({"setup.py": "setup()", "requirements.txt": "-e .\nroman"}, "setup.py", "3.13"),
        ({"setup.py": "setup()", "requirements.txt": "roman"}, "", "3.13"),
    ],
)
def test_what_only_a_build_knows_is_asked_of_one(
    tmp_path: Path, files: Mapping[str, str], built: str, python: str
) -> None:
    recipe = _recipe(tmp_path, files)
    assert (recipe.built, _python(recipe)) == (built, python)
    assert [folder for folder, _ in recipe.folders] == ([built and "."] if built else [])
    assert not any(line.startswith(("-e", COPIES)) for line in recipe.requirements)


@pytest.mark.parametrize(
    ("name", "text", "requirements", "python"),
    [
        (
            "environment.yml",
            "dependencies: [python=3.12, pip, cudatoolkit=11, conda-forge::numpy=1.26=py312_0, 'pandas>=2', pip: [roman, -r more.txt]]",
            ["numpy==1.26.*", "pandas>=2", "roman", "six"],
            "==3.12.*",
        ),
        (
            "Dockerfile",
            (
                "FROM docker.io/python:3.12-slim\nRUN apt-get update && pip install --no-cache-dir 'redis>=5' \\\n  roman && rm -rf /x\n"
                "RUN uv pip install --system -r more.txt --index-url https://a.example/ $EXTRA\n"
            ),
            ["redis>=5", "roman", "six"],
            "==3.12.*",
        ),
    ],
)
def test_without_requirements_a_conda_environment_or_a_dockerfile_is_read(
    tmp_path: Path, name: str, text: str, requirements: list[str], python: str
) -> None:
    recipe = _recipe(tmp_path, {name: text, "more.txt": "six"}, application="a:b")
    assert [line for line in recipe.requirements if line != "uvicorn"] == requirements
    assert recipe.python == python
    both = _recipe(tmp_path, {"requirements.txt": "roman"}, application="a:b")
    assert both.requirements == ("roman", "uvicorn")


@pytest.mark.parametrize(
    ("poetrys", "others"),
    [("^1.2.3", ">=1.2.3,<2"), ("^0.4", ">=0.4,<0.5"), ({"version": ">=1,<2"}, ">=1,<2"), ("~1.2", ""), ("*", "")],
)
def test_poetrys_versions(poetrys: object, others: str) -> None:
    assert pep440(poetrys) == others


def test_an_env_of_nemo_gyms_layout_lists_its_requirements_once(tmp_path: Path) -> None:
    """`gym env start` refuses both files; a repository of its own has a pyproject.toml for its tools."""
    both = {"requirements.txt": "roman", "pyproject.toml": "[project]\nname = 'a'\ndependencies = ['six']"}
    assert _recipe(tmp_path / "env", both).requirements == ("nemo-gym", "roman", "six")
    with pytest.raises(BadRequirements, match="NeMo Gym takes only one of them"):
        _recipe(tmp_path / "resources_servers" / "env", both)


@pytest.mark.parametrize(
    ("tables", "application", "requirements"),
    [
        (
            "[project.optional-dependencies]\nserver = ['nemo-gym>=0.6', 'roman']\ntrain = ['torch']",
            "",
            {"six", "nemo-gym>=0.6", "roman"},
        ),
        ("[dependency-groups]\nserve = ['uvicorn', 'roman']\ndev = ['pytest']", "a:b", {"six", "uvicorn", "roman"}),
        ("[project.optional-dependencies]\nall = ['torch']", "", {"nemo-gym", "six"}),
    ],
)
def test_an_extra_that_names_what_serves_it_is_needed(
    tmp_path: Path, tables: str, application: str, requirements: set[str]
) -> None:
    text = f"[project]\nname = 'a'\ndependencies = ['six']\n{tables}\n"
    assert set(_recipe(tmp_path, {"pyproject.toml": text}, application=application).requirements) == requirements
