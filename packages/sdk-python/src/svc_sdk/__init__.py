"""Sandboxes for untrusted code, on hardware you own: the client library of svc.

`Sandbox` and its like block, `AsyncSandbox` and its like are awaited; both can do the same.
"""

from ._async.client import AsyncClient
from ._async.code_contexts import AsyncCodeContext, AsyncCodeContexts
from ._async.command import AsyncCommand, AsyncOutputStream
from ._async.commands import AsyncCommands
from ._async.create_options import CreateOptions
from ._async.create_request import SecretOption
from ._async.detached_process import AsyncDetachedProcess
from ._async.file_watch import AsyncFileWatch
from ._async.files import AsyncFiles
from ._async.network import AsyncNetwork
from ._async.ports import AsyncPorts
from ._async.sandbox import AsyncSandbox
from ._async.terminals import AsyncTerminal, AsyncTerminals
from ._client.content import Content
from ._client.server_events import StreamEvent
from ._sync.client import Client
from ._sync.code_contexts import CodeContext, CodeContexts
from ._sync.command import Command, OutputStream
from ._sync.commands import Commands
from ._sync.detached_process import DetachedProcess
from ._sync.file_watch import FileWatch
from ._sync.files import Files
from ._sync.network import Network
from ._sync.ports import Ports
from ._sync.sandbox import Sandbox
from ._sync.terminals import Terminal, Terminals
from ._version import __version__
from .errors import SvcError
from .signals import Signal
from .values import (
    CodeException,
    CodeResult,
    CodeRunResult,
    CommandExit,
    DetachedOutput,
    ExecResult,
    FetchProgress,
    FileChange,
    FileInfo,
    LogEntry,
    PulledImage,
)

__all__ = [
    "AsyncClient",
    "AsyncCodeContext",
    "AsyncCodeContexts",
    "AsyncCommand",
    "AsyncCommands",
    "AsyncDetachedProcess",
    "AsyncFileWatch",
    "AsyncFiles",
    "AsyncNetwork",
    "AsyncOutputStream",
    "AsyncPorts",
    "AsyncSandbox",
    "AsyncTerminal",
    "AsyncTerminals",
    "Client",
    "CodeContext",
    "CodeContexts",
    "CodeException",
    "CodeResult",
    "CodeRunResult",
    "Command",
    "CommandExit",
    "Commands",
    "Content",
    "CreateOptions",
    "DetachedOutput",
    "DetachedProcess",
    "ExecResult",
    "FetchProgress",
    "FileChange",
    "FileInfo",
    "FileWatch",
    "Files",
    "LogEntry",
    "Network",
    "OutputStream",
    "Ports",
    "PulledImage",
    "Sandbox",
    "SecretOption",
    "Signal",
    "StreamEvent",
    "SvcError",
    "Terminal",
    "Terminals",
    "__version__",
]
