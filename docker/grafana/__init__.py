"""Grafana: dashboards as code, their JSON, and what provisions them."""
