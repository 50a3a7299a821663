"""Evaluations of a discipline after RFC 7928: its scenarios as a study whose discipline is filled in, and one page."""
