"""Kubernetes: pods, their limits, restarts, metric endpoints, and volumes; and the resources of Strimzi."""
