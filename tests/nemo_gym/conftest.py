"""These tests are collected only where nemo-gym is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("nemo_gym") else ["**/test_*.py"]
