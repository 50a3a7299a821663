"""Runs of scenarios: made side by side and watched, with their memory, their populations and what they record."""
