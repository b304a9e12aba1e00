"""Drift asked of the live server: what two schemas cannot settle, an exchange does."""
