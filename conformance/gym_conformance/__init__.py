"""Judges whether an RL environment for language models is fit to train on."""

__version__ = "0.1.0"

#: The project's home page, below which its checks are documented.
HOME = "https://github.com/gym-conformance/gym-conformance"
DOCS = f"{HOME}/blob/main/docs/checks.md"
