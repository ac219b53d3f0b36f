import { accountOperations } from './accounts.ts';
import { billingOperations } from './billing.ts';
import { capabilityOperations } from './capabilities.ts';
import { codeOperations } from './code.ts';
import { credentialOperations } from './api-keys-and-tokens.ts';
import { eventOperations } from './events.ts';
import { fileOperations } from './files.ts';
import { identityProviderOperations } from './identity-provider.ts';
import { imageOperations } from './images.ts';
import { lifecycleOperations } from './lifecycle.ts';
import { logOperations } from './logs.ts';
import { memberOperations } from './members.ts';
import { metricOperations } from './metrics.ts';
import { networkOperations } from './network.ts';
import { organizationOperations } from './organizations.ts';
import { portOperations } from './ports.ts';
import { processOperations } from './processes.ts';
import { progressOperations } from './progress.ts';
import { quotaOperations } from './quotas.ts';
import { registryOperations } from './registries.ts';
import type { RestOperation } from './rest-operation.ts';
import { sandboxOperations } from './sandboxes.ts';
import { secretOperations } from './secrets.ts';
import { snapshotOperations } from './snapshots.ts';
import { sshKeyOperations } from './ssh-keys.ts';
import { userOperations } from './users.ts';
import { volumeFileOperations } from './volume-files.ts';
import { volumeOperations } from './volumes.ts';
import { webhookOperations } from './webhooks.ts';

/** All operations of the control plane. Routes, validation, OpenAPI and clients derive from this table. */
export const REST_OPERATIONS = {
  ...sandboxOperations,
  ...metricOperations,
  ...progressOperations,
  ...logOperations,
  ...processOperations,
  ...codeOperations,
  ...fileOperations,
  ...networkOperations,
  ...lifecycleOperations,
  ...portOperations,
  ...snapshotOperations,
  ...imageOperations,
  ...volumeOperations,
  ...volumeFileOperations,
  ...quotaOperations,
  ...billingOperations,
  ...eventOperations,
  ...webhookOperations,
  ...organizationOperations,
  ...memberOperations,
  ...identityProviderOperations,
  ...credentialOperations,
  ...registryOperations,
  ...secretOperations,
  ...userOperations,
  ...accountOperations,
  ...sshKeyOperations,
  ...capabilityOperations,
} as const satisfies Record<string, RestOperation>;

export type RestOperations = typeof REST_OPERATIONS;
export type RestOperationName = keyof RestOperations;
