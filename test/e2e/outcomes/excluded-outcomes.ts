import type { RestOperationName } from '@svc/contract/rest';
import type { OutcomeName } from './outcomes.ts';
import type { Way } from './world.ts';

/** Documented, and yet without a test on the real engine. */
export interface ExcludedOutcome {
  readonly operations: readonly RestOperationName[];
  readonly outcome: OutcomeName;
  /** On this address alone. */
  readonly only?: Way;
  readonly reason: string;
}

export const EXCLUDED_OUTCOMES: readonly ExcludedOutcome[] = [
  {
    operations: [
      'sandboxes.create',
      'sandboxes.start',
      'sandboxes.startByName',
      'images.pull',
      'snapshots.create',
      'volumeFiles.write',
      'volumeFiles.mkdir',
      'volumeFiles.copy',
      'volumeFiles.rename',
    ],
    outcome: 'insufficient_storage',
    reason: 'the disk of the host has to be full, which full-disk and full-host do with a disk of their own',
  },
  {
    operations: ['images.remove'],
    outcome: 'ok',
    reason: 'the image has to come from a registry, as it does in test/security/09-quotas.test.ts',
  },
  {
    operations: ['images.remove'],
    outcome: 'image_in_use',
    reason: 'the image has to come from a registry, as it does in test/security/09-quotas.test.ts',
  },
  {
    operations: ['organizations.create'],
    outcome: 'quota_exceeded',
    reason: 'the server needs a limit of its own, as in test/security/09-quotas.test.ts',
  },
  {
    operations: ['session.create', 'sessions.signUp', 'password.set', 'users.remove'],
    outcome: 'unavailable',
    reason: 'takes dozens of people who sign in at the same moment',
  },
  {
    operations: ['session.beginAtProvider'],
    outcome: 'unavailable',
    reason: 'a provider that was asked before has to go away for longer than what it said is kept',
  },
  {
    operations: ['secrets.remove'],
    outcome: 'invalid_state_transition',
    reason: 'a sandbox has to use the secret, as it does in server/src/handlers/credentials/secrets.test.ts',
  },
  {
    operations: ['secrets.put'],
    outcome: 'quota_exceeded',
    reason: 'takes hundreds of secrets, as in server/src/handlers/credentials/secrets.test.ts',
  },
  {
    operations: ['webhooks.redeliver'],
    outcome: 'invalid_state_transition',
    reason: 'it has to be on its way at that moment, as in server/src/handlers/webhooks/webhooks.test.ts',
  },
  {
    operations: ['billing.getInvoice'],
    outcome: 'ok',
    reason: 'this server writes no invoices; what does will keep the address',
  },
  {
    operations: ['quotas.get'],
    outcome: 'org_not_found',
    reason: 'the organization has to be deleted between two queries of one request',
  },
  {
    operations: ['code.run', 'code.stream', 'contexts.create'],
    outcome: 'unavailable',
    reason:
      'an interpreter has half a minute to start in a sandbox that does not answer, which is long for a test',
  },
  {
    operations: ['volumeFiles.mkdir'],
    outcome: 'volume_file_not_found',
    reason: 'a folder that it has just made has to be removed before it makes the next one in it',
  },
  {
    operations: ['files.readByLink', 'files.writeByLink'],
    outcome: 'unavailable',
    reason: 'behind the check of the link they are files.read and files.write, which have it',
  },
  {
    operations: ['files.list', 'files.stat'],
    outcome: 'forbidden',
    only: 'key',
    reason:
      'root of a sandbox may see all that a file system of its own holds; one of another kind may refuse',
  },
  {
    operations: ['volumeFiles.list', 'volumeFiles.read', 'volumeFiles.stat', 'volumeFiles.exists'],
    outcome: 'forbidden',
    only: 'key',
    reason: 'a key has no role, and nothing in a volume of its organization is kept from being read',
  },
];
