"""A simulated fleet with known faults and known decoys, and how well the flagship detectors tell them apart."""
