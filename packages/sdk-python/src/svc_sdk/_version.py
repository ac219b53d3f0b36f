"""Generated from packages/contract by `make generate`."""

__version__ = "0.1.0"
