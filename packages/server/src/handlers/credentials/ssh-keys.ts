import { PlatformError } from '@svc/contract';
import { parsePublicKey } from '../../access/ssh-public-key.ts';
import { addSshKey, listSshKeys, removeSshKey, type SshKeyRecord } from '../../store/ssh-keys.ts';
import { recordEverywhere } from '../../dispatch/record-everywhere.ts';
import { requireUser } from '../../dispatch/require-user.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';

const MAX_KEYS_OF_USER = 100;

export function sshKeyHandlers(
  database: Database,
): Pick<RestHandlers, Extract<keyof RestHandlers, `sshKeys.${string}`>> {
  return {
    'sshKeys.list': async (_input, call) => (await listSshKeys(database, requireUser(call).id)).map(viewKey),
    'sshKeys.create': async ({ body }, call) => await create(body, call),
    'sshKeys.remove': async ({ params }, call) => {
      const answer = () => ({ message: 'The SSH key is revoked' });
      const { id: userId } = requireUser(call);
      await call.commit(async (change) => {
        const removed = await removeSshKey(change.db, userId, params.id.toLowerCase());
        if (removed === undefined) throw new PlatformError('not_found', 'There is no such SSH key');
        await recordEverywhere(change, userId, {
          type: 'ssh_key_removed',
          category: 'ssh_key',
          payload: describe(removed),
        });
      }, answer);
      return answer();
    },
  };
}

async function create(body: { readonly name: string; readonly public_key: string }, call: RestCall) {
  const { id: userId } = requireUser(call);
  const { line: publicKey, fingerprint } = parsePublicKey(body.public_key);
  const added = await call.commit(async (change) => {
    if ((await listSshKeys(change.db, userId)).length >= MAX_KEYS_OF_USER) {
      const message = `You have ${MAX_KEYS_OF_USER} SSH keys, which is the most; remove one first`;
      throw new PlatformError('quota_exceeded', message, { details: { maximum: MAX_KEYS_OF_USER } });
    }
    const key = await addSshKey(change.db, { userId, name: body.name, publicKey, fingerprint });
    if (key === undefined) {
      const message = `You have this key already (${fingerprint})`;
      throw new PlatformError('name_already_exists', message, { details: { fingerprint } });
    }
    await recordEverywhere(change, userId, {
      type: 'ssh_key_added',
      category: 'ssh_key',
      payload: describe(key),
    });
    return key;
  }, viewKey);
  return viewKey(added);
}

function describe({ id, name, fingerprint }: SshKeyRecord): Readonly<Record<string, string>> {
  return { ssh_key_id: id, name, fingerprint };
}

function viewKey(key: SshKeyRecord) {
  return {
    id: key.id,
    name: key.name,
    public_key: key.publicKey,
    fingerprint: key.fingerprint,
    created_at: key.createdAt,
    last_used_at: key.lastUsedAt,
  };
}
