"""Findings, written down: as text and as JSON."""
