"""Tells whether an RL environment for language models is fit to train on."""

__version__ = "0.1.0"
