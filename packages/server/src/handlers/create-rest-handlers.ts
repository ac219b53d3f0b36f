import { billingHandlers } from './billing/billing.ts';
import { capabilityHandlers } from './server/capabilities.ts';
import { codeHandlers } from './code/rest-code.ts';
import { credentialHandlers } from './credentials/credentials.ts';
import { eventHandlers } from './organizations/events.ts';
import { imageHandlers } from './images/images.ts';
import { logHandlers } from './sandboxes/logs.ts';
import { memberHandlers } from './organizations/members.ts';
import { metricHandlers } from './sandboxes/rest-metrics.ts';
import { organizationHandlers } from './organizations/organizations.ts';
import { portHandlers } from './previews/previews.ts';
import { processHandlers } from './processes/rest-processes.ts';
import { progressHandlers } from './sandboxes/progress.ts';
import { quotaHandlers } from './billing/quotas.ts';
import { registryHandlers } from './images/registries.ts';
import { sandboxHandlers } from './sandboxes/rest-sandboxes.ts';
import { snapshotHandlers } from './snapshots/snapshots.ts';
import { sshKeyHandlers } from './credentials/ssh-keys.ts';
import { userHandlers } from './organizations/users.ts';
import { volumeFileHandlers } from './volumes/volume-files.ts';
import { volumeHandlers } from './volumes/volumes.ts';
import type { RestHandlers } from '../dispatch/rest-handlers.ts';
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
