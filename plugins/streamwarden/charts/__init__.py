"""Pictures of findings: one SQL file each under `sql/charts/`."""
