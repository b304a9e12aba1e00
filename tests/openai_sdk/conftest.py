"""These tests are collected only where the OpenAI SDK is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("openai") else ["**/test_*.py"]
