"""These tests are collected only where nemo-evaluator is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("nemo_evaluator") else ["**/test_*.py"]
