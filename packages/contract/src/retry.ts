import type { ErrorCode } from './errors.ts';

/**
 * Whether a failure is transient, so that a client may repeat the same call after some seconds. A code that is missing here does
 * not compile.
 */
const IS_TRANSIENT: Readonly<Record<ErrorCode, boolean>> = {
  invalid_request: false,
  invalid_sandbox_config: false,
  invalid_volume_path: false,
  invalid_cursor: false,
  invalid_image: false,
  invalid_api_key: false,
  sign_in_failed: false,
  forbidden: false,
  network_ceiling_exceeded: false,
  not_found: false,
  sandbox_not_found: false,
  volume_not_found: false,
  volume_file_not_found: false,
  event_not_found: false,
  org_not_found: false,
  image_not_found: false,
  process_not_found: false,
  context_not_found: false,
  snapshot_not_found: false,
  method_not_allowed: false,
  name_already_exists: false,
  invalid_state_transition: false,
  image_in_use: false,
  volume_in_use: false,
  idempotency_conflict: false,
  sandbox_not_running: false,
  context_lost: false,
  precondition_failed: false,
  payload_too_large: false,
  range_not_satisfiable: false,
  isolation_unavailable: false,
  snapshot_ineligible: false,
  // It has the same status as rate_limited, but only the caller can make room.
  quota_exceeded: false,
  rate_limited: true,
  internal: false,
  image_pull_failed: false,
  // An engine that is started again answers within seconds.
  orchestrator_unreachable: true,
  unavailable: true,
  // A full host stays full until a sandbox ends, which takes longer than a client should keep retrying.
  insufficient_capacity: false,
  disk_full: false,
  insufficient_storage: false,
  exec_failed: false,
  exec_timeout: false,
  start_failed: false,
};

/** Whether a later attempt may succeed. Calls that must not take effect twice are repeated too: idempotency keys prevent that. */
export function isTransient(code: ErrorCode): boolean {
  return IS_TRANSIENT[code];
}
