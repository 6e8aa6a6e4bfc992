"""A simulated fleet with known faults and known decoys, and how well the detectors tell them apart."""
