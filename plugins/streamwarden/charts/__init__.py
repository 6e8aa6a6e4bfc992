"""Charts of findings, one SQL file each in `sql/charts/`."""
