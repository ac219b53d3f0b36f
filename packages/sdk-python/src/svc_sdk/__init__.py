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
from ._async.events import AsyncEvents
from ._async.file_watch import AsyncFileWatch
from ._async.files import AsyncFiles
from ._async.git import AsyncGit
from ._async.images import AsyncImages
from ._async.network import AsyncNetwork
from ._async.organization import AsyncOrganization
from ._async.ports import AsyncPorts
from ._async.sandbox import AsyncSandbox
from ._async.secrets import AsyncSecrets, AsyncSshKeys
from ._async.terminals import AsyncTerminal, AsyncTerminals
from ._async.usage import AsyncCapabilities, AsyncUsage
from ._async.volume import AsyncVolume, AsyncVolumeFiles
from ._async.webhooks import AsyncWebhooks
from ._client.content import Content
from ._client.server_events import StreamEvent
from ._sync.client import Client
from ._sync.code_contexts import CodeContext, CodeContexts
from ._sync.command import Command, OutputStream
from ._sync.commands import Commands
from ._sync.detached_process import DetachedProcess
from ._sync.events import Events
from ._sync.file_watch import FileWatch
from ._sync.files import Files
from ._sync.git import Git
from ._sync.images import Images
from ._sync.network import Network
from ._sync.organization import Organization
from ._sync.ports import Ports
from ._sync.sandbox import Sandbox
from ._sync.secrets import Secrets, SshKeys
from ._sync.terminals import Terminal, Terminals
from ._sync.usage import Capabilities, Usage
from ._sync.volume import Volume, VolumeFiles
from ._sync.webhooks import Webhooks
from ._version import __version__
from .errors import SvcError
from .git import GitAuth, GitAuthor, GitBranch, GitChange, GitFileStatus, GitStatus
from .signals import Signal
from .verify_webhook import verify_webhook
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
    FileLink,
    LogEntry,
    NewApiKey,
    PulledImage,
)

__all__ = [
    "AsyncCapabilities",
    "AsyncClient",
    "AsyncCodeContext",
    "AsyncCodeContexts",
    "AsyncCommand",
    "AsyncCommands",
    "AsyncDetachedProcess",
    "AsyncEvents",
    "AsyncFileWatch",
    "AsyncFiles",
    "AsyncGit",
    "AsyncImages",
    "AsyncNetwork",
    "AsyncOrganization",
    "AsyncOutputStream",
    "AsyncPorts",
    "AsyncSandbox",
    "AsyncSecrets",
    "AsyncSshKeys",
    "AsyncTerminal",
    "AsyncTerminals",
    "AsyncUsage",
    "AsyncVolume",
    "AsyncVolumeFiles",
    "AsyncWebhooks",
    "Capabilities",
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
    "Events",
    "ExecResult",
    "FetchProgress",
    "FileChange",
    "FileInfo",
    "FileLink",
    "FileWatch",
    "Files",
    "Git",
    "GitAuth",
    "GitAuthor",
    "GitBranch",
    "GitChange",
    "GitFileStatus",
    "GitStatus",
    "Images",
    "LogEntry",
    "Network",
    "NewApiKey",
    "Organization",
    "OutputStream",
    "Ports",
    "PulledImage",
    "Sandbox",
    "SecretOption",
    "Secrets",
    "Signal",
    "SshKeys",
    "StreamEvent",
    "SvcError",
    "Terminal",
    "Terminals",
    "Usage",
    "Volume",
    "VolumeFiles",
    "Webhooks",
    "__version__",
    "verify_webhook",
]
