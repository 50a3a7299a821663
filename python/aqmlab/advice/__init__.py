"""Advice for a link: which discipline, with what settings, and what it is worth to each application."""
