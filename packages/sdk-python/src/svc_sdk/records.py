"""Generated from packages/contract by `make generate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

EventType = Literal["sandbox_created", "sandbox_started", "sandbox_ending", "sandbox_stopped", "sandbox_failed", "sandbox_deleted", "sandbox_renamed", "sandbox_network_changed", "sandbox_lifecycle_changed", "policy_denied", "secret_violation", "recovery_chosen", "exec_started", "process_signalled", "process_removed", "code_context_created", "code_context_interrupted", "code_context_restarted", "code_context_removed", "file_written", "file_changed", "file_moved", "file_removed", "file_link_created", "folder_created", "ssh_session_opened", "ssh_session_closed", "preview_created", "preview_revoked", "snapshot_requested", "snapshot_created", "snapshot_deleted", "image_pulled", "image_removed", "volume_created", "volume_updated", "volume_deleted", "volume_file_written", "volume_file_removed", "volume_file_copied", "volume_file_renamed", "volume_folder_created", "quota_exceeded", "quota_changed", "api_key_created", "api_key_revoked", "token_created", "token_revoked", "ssh_key_added", "ssh_key_removed", "secret_set", "secret_removed", "registry_updated", "registry_removed", "webhook_created", "webhook_updated", "webhook_secret_rotated", "webhook_tested", "webhook_redelivered", "webhook_disabled", "webhook_deleted", "org_created", "org_updated", "org_deleted", "identity_provider_set", "identity_provider_removed", "member_invited", "member_joined", "member_role_changed", "member_removed", "invite_withdrawn", "invite_declined", "user_updated", "password_changed", "sign_in_link_created", "second_factor_enabled", "second_factor_disabled", "session_created", "session_ended", "sessions_ended", "events_pruned"]


@dataclass(frozen=True, kw_only=True)
class SandboxInfoSpec:
    image: str | None
    env: tuple[Mapping[str, Any], ...]
    labels: Mapping[str, Any]
    lifecycle: Mapping[str, Any]
    mounts: tuple[Mapping[str, Any], ...]
    network: Mapping[str, Any]
    resources: Mapping[str, Any]
    rlimits: tuple[Mapping[str, Any], ...]
    runtime: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SandboxInfoRequested:
    image: str | None
    env: tuple[Mapping[str, Any], ...]
    labels: Mapping[str, Any]
    lifecycle: Mapping[str, Any]
    mounts: tuple[Mapping[str, Any], ...]
    network: Mapping[str, Any]
    resources: Mapping[str, Any]
    rlimits: tuple[Mapping[str, Any], ...]
    runtime: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SandboxInfo:
    #: UUID
    id: str
    #: UUID
    org_id: str
    name: str
    slug: str
    status: Literal["created", "starting", "running", "temporarily_unavailable", "recovery_decision_required", "stopping", "stopped", "failed"]
    #: While status is starting
    status_reason: Literal["scheduling", "insufficient_capacity"] | None
    ephemeral: bool
    #: The host that it is placed on; null before that, and where there is only one host
    node: str | None
    #: The class that was asked for, or else that it got; null until it was first made
    isolation: str | None
    #: What it really has, with what its image and the defaults say; absent until the image is known, which is when it is first started. Curated: no secret values, no paths of the host
    spec: SandboxInfoSpec | None = None
    #: What was asked for, in the shape of `spec`, with defaults and without what the image says; there until the image is known, and while the sandbox is failed
    requested: SandboxInfoRequested | None = None
    #: RFC 3339, UTC
    created_at: str
    #: Start of the latest run
    started_at: str | None
    #: End of the latest run; null while it lasts
    stopped_at: str | None
    last_failure_message: str | None
    temporarily_unavailable_since: str | None
    #: When an explicit recovery choice becomes necessary
    automatic_recovery_ends_at: str | None
    #: When it has run for its max_duration_secs; null: never, or it does not run
    ends_at: str | None


@dataclass(frozen=True, kw_only=True)
class SandboxMetricsSampling:
    #: Nothing is measured: runtime.disable_metrics_sample
    disabled: bool
    #: Between two measurements; one in 5 s at most is kept
    interval_ms: int


@dataclass(frozen=True, kw_only=True)
class SandboxMetricsRange:
    start: int
    end: int
    step_secs: int


@dataclass(frozen=True, kw_only=True)
class SandboxMetricsMetrics:
    #: Empty: nothing was measured
    cpu: tuple[Mapping[str, Any], ...]
    #: Empty: nothing was measured
    memory_bytes: tuple[Mapping[str, Any], ...]
    #: Empty: nothing was measured
    memory_limit_bytes: tuple[Mapping[str, Any], ...]
    #: Empty: nothing was measured
    disk_used_bytes: tuple[Mapping[str, Any], ...]
    #: Empty: nothing was measured
    disk_total_bytes: tuple[Mapping[str, Any], ...]
    #: Empty: nothing was measured
    net_rx_bytes_rate: tuple[Mapping[str, Any], ...]
    #: Empty: nothing was measured
    net_tx_bytes_rate: tuple[Mapping[str, Any], ...]
    #: Empty: nothing was measured
    processes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class SandboxMetrics:
    #: UUID
    sandbox_id: str
    sampling: SandboxMetricsSampling
    range: SandboxMetricsRange
    metrics: SandboxMetricsMetrics


@dataclass(frozen=True, kw_only=True)
class ProcessInfoExit:
    #: Null when a signal ended it, or its end was not observed
    code: int | None
    #: Such as SIGTERM
    signal: str | None
    #: As a shell gives it: the code, or 128 + n when signal n ended it; null when neither is known
    shell_code: int | None
    reason: Literal["exit", "signal", "oom", "pids", "disk_full", "output_limit", "timeout", "idle", "max_duration", "host_lost", "killed_by"]
    #: Who sent the signal or stopped the sandbox
    killed_by: str | None
    #: A sentence that says what happened
    message: str


@dataclass(frozen=True, kw_only=True)
class ProcessInfo:
    #: UUID
    id: str
    #: UUID
    sandbox_id: str
    name: str | None
    #: Inside the sandbox
    pid: int | None
    #: Program and arguments, cut off when they are long
    command: tuple[str, ...]
    tty: bool
    status: Literal["running", "exited"]
    #: RFC 3339, UTC
    started_at: str
    ended_at: str | None
    #: Null while it runs
    exit: ProcessInfoExit | None
    #: Written so far, as last seen
    stdout_bytes: int
    #: Written so far, as last seen
    stderr_bytes: int


@dataclass(frozen=True, kw_only=True)
class ContextInfo:
    id: str
    name: str | None
    #: Null: that of its kernel
    language: Literal["python", "javascript"] | None
    #: The Jupyter kernel that runs its code, if one does
    kernel: str | None
    #: Null: the working directory of the sandbox
    cwd: str | None
    #: Busy: code runs in it, or waits for its turn
    status: Literal["idle", "busy"]
    #: RFC 3339, UTC
    created_at: str


@dataclass(frozen=True, kw_only=True)
class Preview:
    #: UUID
    id: str
    port: int
    #: Where a browser finds the port, with the token where one is needed
    url: str
    #: Who may use the port: clients with the token, or everybody
    access: Literal["token", "public"]
    #: The last 8 characters of the token, to recognize it by; empty when no token is needed
    prefix: str
    #: RFC 3339, UTC
    created_at: str
    #: Null: never
    expires_at: str | None


@dataclass(frozen=True, kw_only=True)
class NewPreview:
    #: UUID
    id: str
    port: int
    #: Where a browser finds the port, with the token where one is needed
    url: str
    #: Who may use the port: clients with the token, or everybody
    access: Literal["token", "public"]
    #: The last 8 characters of the token, to recognize it by; empty when no token is needed
    prefix: str
    #: RFC 3339, UTC
    created_at: str
    #: Null: never
    expires_at: str | None
    #: Shown once; sent as ?svc_preview_token= or in the header x-svc-preview-token. Null when none is needed
    token: str | None


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    kind: Literal["disk"]
    #: UUID
    id: str
    name: str
    location: Mapping[str, Any]
    #: `sha256:` and the hexadecimal SHA-256 of the SHA-256 digests of the disk’s blocks of 64 KiB, in their order
    digest: str
    size_bytes: int
    #: What the snapshot was made of
    manifest: Mapping[str, Any]
    labels: Mapping[str, Any]
    sandbox_id: str | None
    #: RFC 3339, UTC
    created_at: str


@dataclass(frozen=True, kw_only=True)
class NetworkExplanationRule:
    #: In network.policy.rules, from 0; of the default policy when it has none
    index: int
    rule: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class NetworkExplanationAddresses:
    address: str
    group: str | None
    action: Literal["allow", "deny"]
    rule: int | None
    #: `name`: the name may not be asked for; `resolver`: port 53 is answered by the sandbox's own resolver; `closed_port`: a way to resolve names past it; `out_of_reach`: an address that no rule opens; `ceiling`: beyond what the operator lets sandboxes reach; `quic`: a port that is read, closed to UDP
    decided_by: Literal["rule", "default", "no_network", "name", "resolver", "closed_port", "out_of_reach", "ceiling", "quic"]


@dataclass(frozen=True, kw_only=True)
class NetworkExplanationSecrets:
    env_var: str
    action: Literal["substitute", "leave", "block", "block_and_log", "block_and_terminate"]


@dataclass(frozen=True, kw_only=True)
class NetworkExplanation:
    action: Literal["allow", "deny"]
    #: `name`: the name may not be asked for; `resolver`: port 53 is answered by the sandbox's own resolver; `closed_port`: a way to resolve names past it; `out_of_reach`: an address that no rule opens; `ceiling`: beyond what the operator lets sandboxes reach; `quic`: a port that is read, closed to UDP
    decided_by: Literal["rule", "default", "no_network", "name", "resolver", "closed_port", "out_of_reach", "ceiling", "quic"]
    rule: NetworkExplanationRule | None
    #: The rule is about a name
    by_name: bool
    #: A sentence
    reason: str
    #: What this sandbox has resolved the name to, or the address itself; each as it would be judged
    addresses: tuple[NetworkExplanationAddresses, ...]
    #: The sandbox has not resolved the name; it was judged as if it led to some public address
    assumed: bool
    #: What becomes of the placeholder of each secret in a request to that host, if the connection is read: the value takes its place, it is left as it is, or the request is stopped. Of a host that proves its name
    secrets: tuple[NetworkExplanationSecrets, ...]


@dataclass(frozen=True, kw_only=True)
class NetworkDecisionSecret:
    action: str
    method: str
    #: Without its query
    path: str
    #: Whose placeholders were seen
    env_vars: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NetworkDecision:
    #: Hand it back to read on behind this entry. What happens again gets another
    cursor: str
    #: RFC 3339, UTC
    first_ts: str
    #: RFC 3339, UTC
    ts: str
    #: Packets, questions, connections or requests, from `first_ts` to `ts`
    count: int
    #: tcp, udp, icmp: packets, and connections that say nothing; dns: questions; tls, http: what the proxy reads; ingress: connections from outside through a published port
    kind: Literal["dns", "tcp", "udp", "icmp", "tls", "http", "ingress"]
    verdict: Literal["allow", "deny"]
    #: The name that was asked for or said
    host: str | None
    #: Of the peer
    address: str | None
    #: Of the peer; for ingress the one inside
    port: int | None
    protocol: Literal["tcp", "udp", "icmpv4", "icmpv6"]
    #: As in an explanation, and what shows only when it happens. `name`: the name may not be asked for; `resolver`: port 53 is answered by the sandbox's own resolver; `closed_port`: a way to resolve names past it; `out_of_reach`: an address that no rule opens; `ceiling`: beyond what the operator lets sandboxes reach; `quic`: a port that is read, closed to UDP
    decided_by: Literal["rule", "default", "no_network", "name", "resolver", "closed_port", "out_of_reach", "ceiling", "quic", "too_many_connections", "too_many_questions", "no_proxy", "rebind_protection", "secret", "not_readable", "not_one_host", "malformed", "upstream_unreachable", "upstream_not_verified"]
    #: In network.policy.rules of that moment, from 0
    rule: int | None
    #: A sentence, in the words of an explanation
    reason: str
    #: Of a request that was stopped for a secret
    secret: NetworkDecisionSecret | None


@dataclass(frozen=True, kw_only=True)
class VolumeInfo:
    #: UUID
    id: str
    #: Null: the volume of kind `host`
    name: str | None
    #: Every organization has one volume of kind `host`
    kind: Literal["host", "managed"]
    storage: Literal["block"]
    status: Literal["active", "deleting"]
    #: Null: no cap of its own
    capacity_bytes: int | None
    #: Null while it is unknown
    used_bytes: int | None
    labels: Mapping[str, Any]
    #: RFC 3339, UTC
    created_at: str
    #: RFC 3339, UTC
    updated_at: str


@dataclass(frozen=True, kw_only=True)
class VolumeFileInfo:
    #: Relative to the volume
    path: str
    #: A link counts as a file
    kind: Literal["file", "directory"]
    #: Bytes
    size: int
    #: Permission bits
    mode: int
    uid: int
    gid: int
    #: No process may write to it
    readonly: bool
    accessed_at: str | None
    modified_at: str | None
    created_at: str | None


@dataclass(frozen=True, kw_only=True)
class VolumeMetricsRange:
    start: int
    end: int
    step_secs: int


@dataclass(frozen=True, kw_only=True)
class VolumeMetricsMetrics:
    #: Empty: nothing was measured
    used_bytes: tuple[Mapping[str, Any], ...]
    #: Empty: nothing was measured
    capacity_bytes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class VolumeMetrics:
    #: UUID
    volume_id: str
    range: VolumeMetricsRange
    metrics: VolumeMetricsMetrics


@dataclass(frozen=True, kw_only=True)
class ImageInfo:
    #: `sha256:…`: names its content
    id: str
    #: Of its manifest; null when it came from no registry
    digest: str | None
    #: The names that lead to it
    references: tuple[str, ...]
    #: Unpacked
    size_bytes: int
    #: RFC 3339, UTC
    created_at: str
    #: By the organization, to within the hour; null for an image that the operator provides
    last_used_at: str | None
    #: By the operator: it counts for no organization and cannot be removed here
    is_provided: bool
    #: By a sandbox or a snapshot of the organization
    in_use: bool


@dataclass(frozen=True, kw_only=True)
class AuditEvent:
    #: UUID
    id: str
    #: UUID
    org_id: str
    #: Counts the events of the organization from 1, without gaps
    sequence: int
    #: The resource
    category: str
    #: `<resource>_<past participle>`
    event_type: str
    actor: Mapping[str, Any]
    payload: Any
    request_id: str | None
    source_address: str | None
    #: RFC 3339, UTC
    timestamp: str
    #: Empty in the first event
    previous_hash: str
    #: SHA-256 over every other field
    hash: str


@dataclass(frozen=True, kw_only=True)
class Secret:
    #: 1–128 letters, digits, dots, hyphens or underscores; the first one a letter or underscore
    name: str
    #: Who may be sent the value; a sandbox that refers to the secret may name fewer, not others
    allowed_hosts: tuple[Mapping[str, Any], ...]
    #: Authorities (PEM) beside those that the host of the engine trusts which a sandbox that refers to the secret may trust
    upstream_ca_cert: tuple[str, ...]
    #: RFC 3339, UTC
    created_at: str
    #: RFC 3339, UTC
    updated_at: str


@dataclass(frozen=True, kw_only=True)
class SshKey:
    #: UUID
    id: str
    name: str
    #: Type and key, without a comment
    public_key: str
    #: As `ssh-keygen -l` shows it: SHA256:…
    fingerprint: str
    #: RFC 3339, UTC
    created_at: str
    #: To the minute
    last_used_at: str | None


@dataclass(frozen=True, kw_only=True)
class Webhook:
    #: UUID
    id: str
    #: Where events are posted to; https, and a public address unless the operator allows others
    url: str
    #: For people
    description: str
    #: A type such as sandbox_ending, all of a category such as sandbox.*, or * for everything
    event_types: tuple[Literal["*", "sandbox.*", "exec.*", "file.*", "ssh.*", "preview.*", "snapshot.*", "image.*", "volume.*", "quota.*", "api_key.*", "token.*", "ssh_key.*", "secret.*", "registry.*", "webhook.*", "org.*", "member.*", "user.*", "session.*", "event.*", "sandbox_created", "sandbox_started", "sandbox_ending", "sandbox_stopped", "sandbox_failed", "sandbox_deleted", "sandbox_renamed", "sandbox_network_changed", "sandbox_lifecycle_changed", "policy_denied", "secret_violation", "recovery_chosen", "exec_started", "process_signalled", "process_removed", "code_context_created", "code_context_interrupted", "code_context_restarted", "code_context_removed", "file_written", "file_changed", "file_moved", "file_removed", "file_link_created", "folder_created", "ssh_session_opened", "ssh_session_closed", "preview_created", "preview_revoked", "snapshot_requested", "snapshot_created", "snapshot_deleted", "image_pulled", "image_removed", "volume_created", "volume_updated", "volume_deleted", "volume_file_written", "volume_file_removed", "volume_file_copied", "volume_file_renamed", "volume_folder_created", "quota_exceeded", "quota_changed", "api_key_created", "api_key_revoked", "token_created", "token_revoked", "ssh_key_added", "ssh_key_removed", "secret_set", "secret_removed", "registry_updated", "registry_removed", "webhook_created", "webhook_updated", "webhook_secret_rotated", "webhook_tested", "webhook_redelivered", "webhook_disabled", "webhook_deleted", "org_created", "org_updated", "org_deleted", "identity_provider_set", "identity_provider_removed", "member_invited", "member_joined", "member_role_changed", "member_removed", "invite_withdrawn", "invite_declined", "user_updated", "password_changed", "sign_in_link_created", "second_factor_enabled", "second_factor_disabled", "session_created", "session_ended", "sessions_ended", "events_pruned"], ...]
    #: Nothing is sent, and no delivery is made, while it is not
    enabled: bool
    #: Why the server disabled it; null: it did not
    disabled_reason: str | None
    #: Since then every attempt failed; null: the latest did not
    failing_since: str | None
    #: Until then deliveries are signed with the secret before, too
    previous_secret_until: str | None
    #: RFC 3339, UTC
    created_at: str
    #: RFC 3339, UTC
    updated_at: str


@dataclass(frozen=True, kw_only=True)
class NewWebhook:
    #: UUID
    id: str
    #: Where events are posted to; https, and a public address unless the operator allows others
    url: str
    #: For people
    description: str
    #: A type such as sandbox_ending, all of a category such as sandbox.*, or * for everything
    event_types: tuple[Literal["*", "sandbox.*", "exec.*", "file.*", "ssh.*", "preview.*", "snapshot.*", "image.*", "volume.*", "quota.*", "api_key.*", "token.*", "ssh_key.*", "secret.*", "registry.*", "webhook.*", "org.*", "member.*", "user.*", "session.*", "event.*", "sandbox_created", "sandbox_started", "sandbox_ending", "sandbox_stopped", "sandbox_failed", "sandbox_deleted", "sandbox_renamed", "sandbox_network_changed", "sandbox_lifecycle_changed", "policy_denied", "secret_violation", "recovery_chosen", "exec_started", "process_signalled", "process_removed", "code_context_created", "code_context_interrupted", "code_context_restarted", "code_context_removed", "file_written", "file_changed", "file_moved", "file_removed", "file_link_created", "folder_created", "ssh_session_opened", "ssh_session_closed", "preview_created", "preview_revoked", "snapshot_requested", "snapshot_created", "snapshot_deleted", "image_pulled", "image_removed", "volume_created", "volume_updated", "volume_deleted", "volume_file_written", "volume_file_removed", "volume_file_copied", "volume_file_renamed", "volume_folder_created", "quota_exceeded", "quota_changed", "api_key_created", "api_key_revoked", "token_created", "token_revoked", "ssh_key_added", "ssh_key_removed", "secret_set", "secret_removed", "registry_updated", "registry_removed", "webhook_created", "webhook_updated", "webhook_secret_rotated", "webhook_tested", "webhook_redelivered", "webhook_disabled", "webhook_deleted", "org_created", "org_updated", "org_deleted", "identity_provider_set", "identity_provider_removed", "member_invited", "member_joined", "member_role_changed", "member_removed", "invite_withdrawn", "invite_declined", "user_updated", "password_changed", "sign_in_link_created", "second_factor_enabled", "second_factor_disabled", "session_created", "session_ended", "sessions_ended", "events_pruned"], ...]
    #: Nothing is sent, and no delivery is made, while it is not
    enabled: bool
    #: Why the server disabled it; null: it did not
    disabled_reason: str | None
    #: Since then every attempt failed; null: the latest did not
    failing_since: str | None
    #: Until then deliveries are signed with the secret before, too
    previous_secret_until: str | None
    #: RFC 3339, UTC
    created_at: str
    #: RFC 3339, UTC
    updated_at: str
    #: Shown once; what deliveries are signed with: whsec_…
    secret: str | None


@dataclass(frozen=True, kw_only=True)
class WebhookDeliveryAttempts:
    #: RFC 3339, UTC
    at: str
    #: Of the answer; null: there was none
    status: int | None
    latency_ms: int
    #: Why it failed; null: it was taken
    error: str | None
    #: The beginning of the answer, as text
    response: str


@dataclass(frozen=True, kw_only=True)
class WebhookDelivery:
    #: UUID
    id: str
    #: UUID
    webhook_id: str
    #: The header webhook-id, the same in every attempt
    message_id: str
    #: Null: a test
    event_id: str | None
    event_type: str
    #: Pending: there will be another attempt; failed: there will be none
    status: Literal["pending", "succeeded", "failed"]
    #: Oldest first; the latest 20
    attempts: tuple[WebhookDeliveryAttempts, ...]
    next_attempt_at: str | None
    #: RFC 3339, UTC
    created_at: str


@dataclass(frozen=True, kw_only=True)
class OrganizationInfo:
    #: UUID
    id: str
    name: str
    slug: str
    plan: str
    mfa_required: bool
    is_suspended: bool
    #: RFC 3339, UTC
    created_at: str
    #: RFC 3339, UTC
    updated_at: str
    #: Each may do what those before it may
    role: Literal["member", "admin", "owner"]


@dataclass(frozen=True, kw_only=True)
class Member:
    #: UUID
    user_id: str
    email: str
    display_name: str | None
    avatar_url: str | None
    #: Each may do what those before it may
    role: Literal["member", "admin", "owner"]
    #: RFC 3339, UTC
    joined_at: str


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    #: UUID
    id: str
    name: str
    #: The last 8 characters of the secret, to recognize it by
    prefix: str
    #: RFC 3339, UTC
    created_at: str
    #: Null: never
    expires_at: str | None
    #: To the minute
    last_used_at: str | None
    #: Null: made on the command line of the server
    created_by: str | None


@dataclass(frozen=True, kw_only=True)
class UsageSummaryLineItems:
    name: str
    quantity: float
    unit: str
    amount_cents: int


@dataclass(frozen=True, kw_only=True)
class UsageSummaryDaily:
    #: Midnight in UTC, RFC 3339
    date: str
    metric: Literal["vcpu_hours", "memory_gib_hours", "disk_gib_hours", "storage_gib_hours", "snapshot_storage_gib_hours"]
    quantity: float


@dataclass(frozen=True, kw_only=True)
class UsageSummary:
    #: RFC 3339, UTC
    period_start: str
    #: RFC 3339, UTC
    period_end: str
    line_items: tuple[UsageSummaryLineItems, ...]
    total_cents: int
    #: One per day and metric
    daily: tuple[UsageSummaryDaily, ...]
    #: If the month goes on like this
    projected_spend_cents: int
    #: In volumes now; null when it was not measured yet
    storage_gib: float | None
    #: In managed snapshots now
    snapshot_storage_gib: float | None


@dataclass(frozen=True, kw_only=True)
class SandboxUsageRows:
    #: UUID
    sandbox_id: str
    #: Midnight in UTC, RFC 3339
    day: str
    vcpu_seconds: float
    mem_mib_seconds: float
    disk_mib_seconds: float


@dataclass(frozen=True, kw_only=True)
class SandboxUsageSandboxes:
    #: UUID
    id: str
    name: str
    slug: str


@dataclass(frozen=True, kw_only=True)
class SandboxUsage:
    #: One per sandbox and day
    rows: tuple[SandboxUsageRows, ...]
    #: Those of the rows, deleted ones too
    sandboxes: tuple[SandboxUsageSandboxes, ...]


@dataclass(frozen=True, kw_only=True)
class StorageUsageRows:
    #: UUID
    volume_id: str
    #: Midnight in UTC, RFC 3339
    day: str
    mib_seconds: float


@dataclass(frozen=True, kw_only=True)
class StorageUsageVolumes:
    #: UUID
    id: str
    name: str | None


@dataclass(frozen=True, kw_only=True)
class StorageUsage:
    #: One per volume and day
    rows: tuple[StorageUsageRows, ...]
    #: Those of the rows, deleted ones too
    volumes: tuple[StorageUsageVolumes, ...]


@dataclass(frozen=True, kw_only=True)
class Quotas:
    #: The plan has no price for more than it includes
    hard_cap: bool
    #: Nothing starts until the next month, a larger pool or a priced plan
    pool_exhausted: bool
    vcpu_hours_used: float
    memory_gib_hours_used: float
    total_sandboxes: int
    #: Running or starting
    concurrent_ephemeral_running: int
    #: Running or starting
    concurrent_persistent_running: int
    snapshot_storage_bytes: int
    #: Null while the engine cannot be asked
    image_storage_bytes: int | None
    #: Nothing can be created or started
    is_suspended: bool
    #: Of a calendar month
    included_vcpu_hours: int | None
    #: Of a calendar month
    included_memory_gib_hours: int | None
    #: Of a calendar month; only shown and priced, never a reason to stop
    included_disk_gib_hours: int | None
    #: Stored in volumes, as an average of the month; only priced
    included_storage_gib: int | None
    #: Sandboxes that exist at once
    max_sandboxes: int | None
    #: Running or starting at once
    max_concurrent_ephemeral_running: int | None
    #: Running or starting at once
    max_concurrent_persistent_running: int | None
    #: Null: what this server can run
    max_vcpus_per_sandbox: int | None
    #: Null: what this server can run
    max_memory_mib_per_sandbox: int | None
    #: Null: what this server can run
    max_disk_size_mib_per_sandbox: int | None
    #: A longer run is stopped
    max_uptime_minutes_per_sandbox: int | None
    #: Volumes together: the capacity of those that have one, the content of the others
    max_total_storage_gib: int | None
    #: Managed snapshots together
    max_snapshot_storage_gib: int | None
    #: Images that the organization pulled or used, unpacked: each layer once, and 4 KiB for each file; without those of the operator
    max_image_storage_gib: int | None


@dataclass(frozen=True, kw_only=True)
class ServerCapabilitiesIsolation:
    #: What `auto` gives; null when nothing can be run
    default: str | None
    classes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class ServerCapabilitiesNodes:
    name: str
    is_available: bool
    #: Why no sandbox can run there; null: they can
    reason: str | None
    #: Of its engine; null while it is away
    version: str | None
    #: What `auto` gives there
    isolation: str | None
    #: How many it has, of all organizations
    sandboxes: int | None


@dataclass(frozen=True, kw_only=True)
class ServerCapabilitiesNetwork:
    #: What the operator lets sandboxes of this organization reach at most: `public`, `private`, `host`, `metadata`, `link_local`, ranges of addresses, or `all` alone. A policy that allows more is `network_ceiling_exceeded`
    ceiling: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ServerCapabilitiesSsh:
    #: On the host of this API; the user name is the slug of a sandbox
    port: int
    #: As a line of a known_hosts file has it: type and key
    host_key: str
    #: Of the host key, as `ssh` asks its user about it: SHA256:…
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class ServerCapabilitiesPreviews:
    #: Port PORT of a sandbox is at PORT-SLUG.DOMAIN
    domain: str
    scheme: Literal["http", "https"]
    #: That browsers connect to
    port: int
    #: On the machine of this server previews open without a token
    is_open: bool


@dataclass(frozen=True, kw_only=True)
class ServerCapabilitiesLimits:
    default_page_size: int
    max_page_size: int
    #: Of JSON, but for the create of a sandbox, which may have 24 MiB; streamed files may be of any size
    max_body_bytes: int
    max_metrics_range_secs: int
    min_metrics_step_secs: int


@dataclass(frozen=True, kw_only=True)
class ServerCapabilities:
    #: Of the engine that runs sandboxes
    version: str
    isolation: ServerCapabilitiesIsolation
    #: The hosts of sandboxes; empty where there is only one
    nodes: tuple[ServerCapabilitiesNodes, ...]
    network: ServerCapabilitiesNetwork
    #: Null: this server has no SSH gateway
    ssh: ServerCapabilitiesSsh | None
    #: Null: this server has no domain for previews
    previews: ServerCapabilitiesPreviews | None
    features: tuple[Literal["snapshots", "volumes", "recovery", "idempotency_keys", "metrics_history", "audit_chain"], ...]
    limits: ServerCapabilitiesLimits


@dataclass(frozen=True, kw_only=True)
class CodeExceptionFrames:
    #: Such as `<cell 3>`: the third code that ran in the context
    file: str
    line: int
    function: str
    #: The line itself, when it is known
    source: str


@dataclass(frozen=True, kw_only=True)
class CodeException:
    #: Such as ValueError
    name: str
    message: str
    #: As it is in stderr
    traceback: str
    #: Where in the code that was sent, outermost first; frames of libraries are in `traceback` alone
    frames: tuple[CodeExceptionFrames, ...]
