import { billingHandlers } from './billing.ts';
import { capabilityHandlers } from './capabilities.ts';
import { codeHandlers } from './code.ts';
import { credentialHandlers } from './credentials.ts';
import { eventHandlers } from './events.ts';
import { imageHandlers } from './images.ts';
import { logHandlers } from './logs.ts';
import { memberHandlers } from './members.ts';
import { metricHandlers } from './metrics.ts';
import { organizationHandlers } from './organizations.ts';
import { portHandlers } from './ports.ts';
import { processHandlers } from './processes.ts';
import { progressHandlers } from './progress.ts';
import { quotaHandlers } from './quotas.ts';
import { registryHandlers } from './registries.ts';
import { sandboxHandlers } from './sandboxes.ts';
import { snapshotHandlers } from './snapshots.ts';
import { sshKeyHandlers } from './ssh-keys.ts';
import { userHandlers } from './users.ts';
import { volumeFileHandlers } from './volume-files.ts';
import { volumeHandlers } from './volumes.ts';
import type { RestHandlers } from './rest-handlers.ts';
import type { RestParts } from './rest-parts.ts';

/** Every handler of the control plane. */
export function createRestHandlers(parts: RestParts): RestHandlers {
  return {
    ...billingHandlers(parts),
    ...capabilityHandlers(parts),
    ...codeHandlers(parts),
    ...credentialHandlers(parts),
    ...eventHandlers(parts),
    ...imageHandlers(parts),
    ...logHandlers(parts),
    ...memberHandlers(parts),
    ...metricHandlers(parts),
    ...organizationHandlers(parts),
    ...portHandlers(parts),
    ...processHandlers(parts),
    ...progressHandlers(parts),
    ...quotaHandlers(parts),
    ...registryHandlers(parts),
    ...sandboxHandlers(parts),
    ...snapshotHandlers(parts),
    ...sshKeyHandlers(parts),
    ...userHandlers(parts),
    ...volumeFileHandlers(parts),
    ...volumeHandlers(parts),
  };
}
