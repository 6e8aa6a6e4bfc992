"""The demo fleet: real parts, small, on 127.0.0.1 only, with faults that can be switched on by name."""
