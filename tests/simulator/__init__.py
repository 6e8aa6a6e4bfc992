"""A simulated fleet with known faults and decoys, and scores of how well the detectors distinguish them."""
