"""The report of a result or comparison: one HTML page that needs nothing else, and its figures as SVG and PNG."""

from aqmlab.report.page import write

__all__ = ["write"]
