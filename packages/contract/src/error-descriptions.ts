import type { ErrorCode } from './errors.ts';

/** What each code means and what a caller does about it. A code without a description does not compile. */
export const ERROR_DESCRIPTIONS = {
  invalid_request: 'The request is malformed. Correct the field that the message names.',
  invalid_sandbox_config:
    'The sandbox spec asks for something impossible or contradictory. Correct the field that the message names.',
  invalid_volume_path:
    'A path in a volume is absolute, has `..`, an empty part or a name that is too long. Send a clean relative path.',
  invalid_cursor: 'The cursor was not made by this endpoint, or is too old. Start again without one.',
  invalid_image: 'The image is broken, hostile, or not for this machine. Use another one.',
  invalid_api_key: 'No valid credential was sent. Send an API key that exists and has not expired.',
  sign_in_failed:
    'The password, the code or the link is not accepted. Correct it and sign in again; the operator of the server helps with `svc user link`.',
  forbidden: 'The credential is valid but not for this. Use one with the right to do it.',
  network_ceiling_exceeded:
    'The network policy allows more than the operator of the server lets sandboxes reach. Leave out the rule that `details.field` names; `details.ceiling` lists what there is.',
  not_found: 'There is nothing at this address.',
  sandbox_not_found: 'There is no sandbox of this name or id. List them to see which exist.',
  volume_not_found: 'There is no volume of this name or id.',
  volume_file_not_found: 'There is no such file in the volume.',
  event_not_found: 'There is no such event.',
  org_not_found: 'There is no such organization, or the credential does not belong to it.',
  image_not_found: 'The image is not on this host and may not be pulled, or its registry does not have it.',
  process_not_found: 'There is no such process in the sandbox.',
  context_not_found:
    'There is no such code context in the sandbox. List them, or make one: they end with the run of their sandbox.',
  snapshot_not_found: 'There is no snapshot of this name or id. List them to see which exist.',
  method_not_allowed: 'The address exists, but not with this method.',
  name_already_exists: 'The name is taken. Choose another one, or use what is there.',
  invalid_state_transition: 'The state it is in does not allow this. The message says which state that is.',
  image_in_use: 'A sandbox uses the image. Remove the sandbox first.',
  volume_in_use: 'A sandbox has the volume mounted. Stop the sandbox first.',
  idempotency_conflict: 'The same idempotency key came with another body. Use a new key.',
  sandbox_not_running: 'The sandbox does not run. Start it first.',
  context_lost:
    'The code context ended with the run of its sandbox, or was removed while code ran in it, and its state with it. Make a new one.',
  precondition_failed:
    'Another caller changed it since it was read. Read it again, then repeat the change with its new ETag.',
  payload_too_large: 'The body is larger than the limit that the message names.',
  range_not_satisfiable:
    'The range begins behind the end of the file. `Content-Range` of the answer says how long it is.',
  isolation_unavailable:
    'This host lacks the isolation class that was asked for. `svc doctor` says why; protection is never weakened silently.',
  snapshot_ineligible:
    'No snapshot can be made of this sandbox as it is: it has never been started, is between two states, or is ephemeral and does not run.',
  exec_failed: 'The command could not be started in the sandbox. The message says why.',
  quota_exceeded: 'The quota does not allow more. Remove something, or have the quota raised.',
  rate_limited: 'Too many requests. Wait as long as the answer says.',
  internal: 'A bug. The log of the server or engine has the details.',
  image_pull_failed: 'The registry could not be reached, refused, or sent something else than it promised.',
  orchestrator_unreachable: 'The engine does not answer. Start it; sandboxes that run are not affected.',
  unavailable: 'The service cannot answer now. Try again later.',
  insufficient_capacity: 'This host has no room for another sandbox now. Try again later, or free some.',
  disk_full: 'The volume or the disk of the sandbox is full. Free some space in it, or ask for more.',
  insufficient_storage:
    'The disk of the host is nearly full, so nothing new is begun. Remove what is not needed; stopping, reading and deleting always work.',
  exec_timeout: 'The command ran longer than it was given, and was killed.',
  start_failed: 'The sandbox could not be started. The message names the cause.',
} as const satisfies Record<ErrorCode, string>;
