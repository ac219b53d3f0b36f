"""Sandboxes of svc as environments of Harbor: `svc_harbor:SvcEnvironment`."""

from ._environment import SvcEnvironment

__all__ = ["SvcEnvironment"]
