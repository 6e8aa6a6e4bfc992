"""Interfaces for programs: the REST API (`/streamwarden/api/v1`) and the Prometheus page (`/streamwarden/metrics`)."""
