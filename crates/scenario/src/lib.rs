//! Text to checked values: units, distributions, scenarios.
