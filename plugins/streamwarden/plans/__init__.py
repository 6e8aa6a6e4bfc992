"""Plans that are printed and never run: rebalance, replicas, removal."""
