import { identityProviderHandlers } from './accounts/identity-provider.ts';
import { providerSessionHandlers, type ProviderSessionParts } from './accounts/provider-sessions.ts';
import { secondFactorHandlers } from './accounts/second-factor.ts';
import { sessionHandlers, type AccountParts } from './accounts/sessions.ts';
import { billingHandlers } from './billing/billing.ts';
import { capabilityHandlers, type CapabilityParts } from './server/capabilities.ts';
import { codeHandlers, type CodeParts } from './code/rest-code.ts';
import { credentialHandlers } from './credentials/api-keys-and-tokens.ts';
import { eventHandlers } from './organizations/events.ts';
import { fileHandlers } from './files/rest-files.ts';
import { imageHandlers, type ImageParts } from './images/images.ts';
import { logHandlers } from './sandboxes/logs.ts';
import { memberHandlers } from './organizations/members.ts';
import { metricHandlers } from './sandboxes/rest-metrics.ts';
import { lifecycleHandlers } from './sandboxes/lifecycle.ts';
import { networkLogHandlers } from './sandboxes/network-log.ts';
import { networkHandlers } from './sandboxes/rest-network.ts';
import { organizationHandlers } from './organizations/organizations.ts';
import { previewHandlers } from './previews/previews.ts';
import { processHandlers, type ProcessParts } from './processes/rest-processes.ts';
import { progressHandlers } from './sandboxes/progress.ts';
import { quotaHandlers } from './billing/quotas.ts';
import { registryHandlers } from './images/registries.ts';
import { secretHandlers } from './credentials/secrets.ts';
import { sandboxHandlers, type SandboxParts } from './sandboxes/rest-sandboxes.ts';
import { snapshotHandlers, type SnapshotParts } from './snapshots/snapshots.ts';
import { sshKeyHandlers } from './credentials/ssh-keys.ts';
import { userHandlers } from './organizations/users.ts';
import { volumeFileHandlers } from './volumes/volume-files.ts';
import type { RemovalParts } from './organizations/remove-organization.ts';
import type { VolumeParts } from './volumes/update-volume.ts';
import { volumeHandlers } from './volumes/volumes.ts';
import { webhookHandlers, type WebhookParts } from './webhooks/webhooks.ts';
import type { RestHandlers } from '../dispatch/rest-handlers.ts';
import type { MetricHistory } from '../accounting/metric-history.ts';

/** Everything that the handlers of the control plane need; each handler takes a part. */
export type RestParts = AccountParts &
  ProviderSessionParts &
  CapabilityParts &
  CodeParts &
  ImageParts &
  ProcessParts &
  RemovalParts &
  SandboxParts &
  SnapshotParts &
  VolumeParts &
  WebhookParts & {
    readonly metricHistory: MetricHistory;
    /** Null: no limit. */
    readonly maxOrganizationsPerUser: number | null;
  };

/** Every handler of the control plane. */
export function createRestHandlers(parts: RestParts): RestHandlers {
  const { database, orchestrator, convergence } = parts;
  return {
    ...billingHandlers(database),
    ...capabilityHandlers(parts),
    ...codeHandlers(parts),
    ...credentialHandlers(database),
    ...eventHandlers(database),
    ...fileHandlers(parts),
    ...identityProviderHandlers(parts),
    ...imageHandlers(parts),
    ...lifecycleHandlers(parts),
    ...logHandlers(database, orchestrator),
    ...memberHandlers(database),
    ...metricHandlers(database, parts.metricHistory),
    ...networkHandlers(parts),
    ...networkLogHandlers(database, orchestrator),
    ...organizationHandlers(database, parts, parts.maxOrganizationsPerUser),
    ...previewHandlers(database, parts.previews),
    ...processHandlers(parts),
    ...progressHandlers(database, convergence),
    ...quotaHandlers(database, parts.imageStore),
    ...secondFactorHandlers(parts),
    ...sessionHandlers(parts),
    ...providerSessionHandlers(parts),
    ...registryHandlers(database, parts.sealer),
    ...sandboxHandlers(parts),
    ...secretHandlers(parts),
    ...snapshotHandlers(parts),
    ...sshKeyHandlers(database),
    ...userHandlers(parts),
    ...volumeFileHandlers(parts),
    ...volumeHandlers(parts),
    ...webhookHandlers(parts),
  };
}
