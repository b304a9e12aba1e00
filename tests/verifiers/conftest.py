"""These tests are collected only where Verifiers is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("verifiers") else ["**/test_*.py"]
