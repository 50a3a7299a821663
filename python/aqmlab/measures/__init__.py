"""What is measured of a run: the catalogue that claims, figures and tables of studies name."""
