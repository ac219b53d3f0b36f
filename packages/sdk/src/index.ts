export type { Content } from './client/byte-content.ts';
export type { CallOptions } from './client/call-budget.ts';
export { Client } from './client/client.ts';
export type { ClientCallOptions, ClientOptions } from './client/client.ts';
export type { RestCallInput, RestCallOutput } from './client/rest-call.ts';
export { SvcError } from './svc-error.ts';
export type { SvcErrorCode } from './svc-error.ts';
export { Sandbox } from './sandbox/sandbox.ts';
export type { CreateSandboxOptions, ListOptions } from './sandbox/sandbox.ts';
export type { CreateOptions } from './sandbox/create-options.ts';
export type { CodeContext, CodeContexts, CreateContextOptions } from './sandbox/code-contexts.ts';
export type { Command, CommandExit } from './sandbox/command.ts';
export type { CommandOptions } from './sandbox/command-options.ts';
export type { Commands, RunOptions, StartOptions } from './sandbox/commands.ts';
export type { DetachedOptions, DetachedOutput, DetachedProcess } from './sandbox/detached-process.ts';
export type { ExecResult } from './sandbox/exec-result.ts';
export type { FileLink, LinkOptions } from './sandbox/file-link.ts';
export type { FileInfo, Files, WriteOptions } from './sandbox/files.ts';
export type { FileChange, FileWatch, WatchOptions } from './sandbox/file-watch.ts';
export type {
  Git,
  GitCloneOptions,
  GitCommitOptions,
  GitPullOptions,
  GitPushOptions,
} from './sandbox/git.ts';
export type { GitAuth, GitOptions } from './sandbox/git-program.ts';
export type { GitBranch, GitChange, GitFileStatus, GitStatus } from './sandbox/git-status.ts';
export type { LogEntry, LogOptions, LogSource } from './sandbox/logs.ts';
export type { OutputStream } from './sandbox/output-stream.ts';
export type { NewPreview, Ports, Preview } from './sandbox/ports.ts';
export type {
  NetworkChange,
  NetworkDecision,
  NetworkExplanation,
  NetworkLogOptions,
  SandboxNetwork,
} from './sandbox/sandbox-network.ts';
export type { CodeRunResult, ResultChart, ResultTable } from './sandbox/code-run-result.ts';
export type { CodeException, CodeResult, RunCodeOptions } from './sandbox/run-code.ts';
export type { Signal } from './sandbox/signals.ts';
export type { SnapshotOptions } from './sandbox/snapshot.ts';
export type { Terminal, TerminalOptions, Terminals } from './sandbox/terminals.ts';
export { Capabilities } from './resources/capabilities.ts';
export type { ServerCapabilities } from './resources/capabilities.ts';
export { Events } from './resources/events.ts';
export type { AuditEvent, ListEventsOptions } from './resources/events.ts';
export { Images } from './resources/images.ts';
export type { FetchProgress, ImageInfo, PulledImage, PullOptions } from './resources/images.ts';
export { Organization } from './resources/organization.ts';
export { Secrets } from './resources/secrets.ts';
export type { NewSecret, Secret } from './resources/secrets.ts';
export type { SecretEntry, SecretOption } from './sandbox/secret-entry.ts';
export { SshKeys } from './resources/ssh-keys.ts';
export type { SshKey } from './resources/ssh-keys.ts';
export { Usage } from './resources/usage.ts';
export type { UsageWindow } from './resources/usage.ts';
export { Volume } from './resources/volume.ts';
export type { CreateVolumeOptions } from './resources/volume.ts';
export type { VolumeFiles } from './resources/volume-files.ts';
export { Webhooks } from './resources/webhooks.ts';
export type {
  CreateWebhook,
  NewWebhook,
  Webhook,
  WebhookChange,
  WebhookDelivery,
} from './resources/webhooks.ts';
export { verifyWebhook } from './resources/verify-webhook.ts';
export type { VerifyOptions, WebhookHeaders, WebhookMessage } from './resources/verify-webhook.ts';
