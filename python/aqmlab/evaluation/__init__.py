"""Evaluations of a discipline after RFC 7928, or of a congestion controller after RFC 9743.

The RFC's scenarios are a study in which it is filled in, and one page is written.
"""
