"""The requirements of an env without requirements.txt: of a conda environment, a Dockerfile, or a build's own files."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gym_conformance.documents import read_text, yaml_mapping

_CONDA: Final = ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")

#: Conda packages that an environment has anyway, or that only conda has.
_NOT_IN_AN_INDEX: Final = re.compile(
    r"(?:python|pip|uv|conda|mamba|setuptools|wheel|cuda.*|lib.*|mkl|gcc.*|gxx.*|git|make|cmake)$"
)
_CONDAS_OWN: Final = re.compile(r"(?:[\w.-]+::)?(?P<name>[\w.-]+)\s*(?P<version>[=<>!~].*)?")

#: A Dockerfile command that installs packages, up to its end.
_INSTALLS: Final = re.compile(r"\bpip3?\s+install\s+([^&;|\n]*)")
_FROM_PYTHON: Final = re.compile(r"^FROM\s+\S*\bpython:(3\.\d+)", re.MULTILINE | re.IGNORECASE)
_VALUED: Final = frozenset(
    {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-c", "--constraint", "--target"}
)

#: The Python that a build's own files require.
_NEEDS_PYTHON: Final = re.compile(r"python_requires\s*=\s*[\"']?([^\"'\n]+)")
_CARET: Final = re.compile(r"\^\s*(\d+)(?:\.(\d+))?[\w.]*")


def listed_elsewhere(folder: Path) -> tuple[list[str], str]:
    """The requirements of a conda environment, else of a Dockerfile, and the Python versions that it names.

    Both are empty if the folder has neither.
    """
    for name in _CONDA:
        if said := yaml_mapping(folder / name):
            return list(_of_conda(said)), _python_of_conda(said)
    try:
        text = re.sub(r"\\\r?\n", " ", read_text(folder / "Dockerfile"))
    except (OSError, ValueError):
        return [], ""
    found = _FROM_PYTHON.search(text)
    return [
        line for command in _INSTALLS.findall(text) for line in _of_pip(command)
    ], f"=={found[1]}.*" if found else ""


def pythons_of_a_build(text: str) -> str:
    """The Python versions in a setup.py or a setup.cfg; '' if there are none."""
    found = _NEEDS_PYTHON.search(text)
    return found[1].strip() if found else ""


def pep440(poetrys: Any) -> str:
    """A version in Poetry's notation, in that of PEP 440; '' if it is not understood."""
    said = str(poetrys.get("version", "") if isinstance(poetrys, dict) else poetrys).strip()
    if found := _CARET.fullmatch(said):
        major, minor = int(found[1]), int(found[2] or 0)
        return f">={said[1:].strip()},<{f'{major + 1}' if major else f'0.{minor + 1}'}"
    return said if re.match(r"[<>=!~]", said) and not re.match(r"~\d", said) else ""


def _of_conda(said: Mapping[str, Any]) -> Iterator[str]:
    for each in said.get("dependencies") or ():
        if isinstance(each, dict):
            yield from (line for line in each.get("pip") or () if isinstance(line, str))
        elif (found := _CONDAS_OWN.fullmatch(str(each).strip())) and not _NOT_IN_AN_INDEX.match(found["name"]):
            yield found["name"] + _version(found["version"] or "")


def _python_of_conda(said: Mapping[str, Any]) -> str:
    for each in said.get("dependencies") or ():
        if isinstance(each, str) and (found := _CONDAS_OWN.fullmatch(each.strip())) and found["name"] == "python":
            return _version(found["version"] or "")
    return ""


def _version(condas: str) -> str:
    """A version in conda's notation, without its build: `=1.2` is any 1.2."""
    said = condas.replace(" ", "")
    if found := re.fullmatch(r"=([\w.*]+)(?:=\S+)?", said):
        return f"=={found[1].removesuffix('.*')}.*"
    return said


def _of_pip(command: str) -> Iterator[str]:
    """What a pip command installs: requirements, and files of requirements."""
    try:
        words = iter(shlex.split(command, comments=True))
    except ValueError:
        return
    for word in words:
        if word in ("-r", "--requirement"):
            yield f"-r {next(words, '')}"
        elif word in _VALUED:
            next(words, None)
        elif not word.startswith("-") and "$" not in word:
            yield word
