"""Drift checked against the live server: an exchange settles what two schemas cannot."""
