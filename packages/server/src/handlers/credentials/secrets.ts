import { checkHosts, PlatformError } from '@svc/contract';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Convergence } from '../../sandboxes/convergence.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import type { Database } from '../../store/database.ts';
import {
  listSecrets,
  listUsersOfSecret,
  markValuesPending,
  putSecret,
  removeSecret,
  secretContext,
  type SecretRecord,
} from '../../store/secrets.ts';

const MAX_SECRETS = 256;
const PEM = /^\s*-----BEGIN CERTIFICATE-----/;
const PEM_HINT = 'must be the text of a certificate (PEM), not a path';

type SecretHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `secrets.${string}`>>;

export interface SecretParts {
  readonly database: Database;
  readonly sealer: Sealer;
  readonly convergence: Convergence;
}

/** Values are write-only: they are sent to the engine alone. */
export function secretHandlers({ database, sealer, convergence }: SecretParts): SecretHandlers {
  return {
    'secrets.list': async (_input, { organization }) =>
      (await listSecrets(database, organization.id)).map(viewSecret),
    'secrets.put': async ({ params: { name }, body }, { organization, commit }) => {
      const { value, allowed_hosts: allowedHosts, upstream_ca_cert: authorities = [] } = body;
      checkHosts(allowedHosts, 'allowed_hosts', invalid);
      for (const [index, text] of authorities.entries())
        if (!PEM.test(text)) throw invalid(`upstream_ca_cert[${index}]`, PEM_HINT);
      const seal = (id: string) => sealer.seal(value, secretContext(id));
      let users: readonly string[] = [];
      const put = await commit(async ({ db, record }) => {
        const kept = await listSecrets(db, organization.id);
        if (kept.length >= MAX_SECRETS && !kept.some((secret) => secret.name === name)) throw tooMany();
        const secret = await putSecret(db, organization.id, { name, allowedHosts, authorities, seal });
        users = (await listUsersOfSecret(db, organization.id, name)).map(({ id }) => id);
        await markValuesPending(db, users);
        const payload = { name, allowed_hosts: allowedHosts, sandboxes: users.length };
        await record({ type: 'secret_set', category: 'secret', payload });
        return secret;
      }, viewSecret);
      // Failures are retried at the next reconciliation of the sandbox.
      for (const id of users) convergence.refresh(id);
      return viewSecret(put);
    },
    'secrets.remove': async ({ params: { name } }, { organization, commit }) => {
      const answer = () => ({ message: `The secret ${name} is forgotten` });
      await commit(async ({ db, record }) => {
        const [user] = await listUsersOfSecret(db, organization.id, name);
        if (user !== undefined) throw inUse(name, user.name);
        if (!(await removeSecret(db, organization.id, name)))
          throw new PlatformError(
            'not_found',
            `There is no secret ${name}; svc secret ls shows those that exist`,
          );
        await record({ type: 'secret_removed', category: 'secret', payload: { name } });
      }, answer);
      return answer();
    },
  };
}

function viewSecret({ name, allowedHosts, authorities, createdAt, updatedAt }: SecretRecord) {
  return {
    name,
    allowed_hosts: [...allowedHosts],
    upstream_ca_cert: [...authorities],
    created_at: createdAt,
    updated_at: updatedAt,
  };
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_request', `${field} ${reason}`, { details: { field, reason } });
}

function tooMany(): PlatformError {
  const message = `The organization has ${MAX_SECRETS} secrets, which is the most; remove one first`;
  return new PlatformError('quota_exceeded', message, { details: { maximum: MAX_SECRETS } });
}

function inUse(name: string, sandbox: string): PlatformError {
  const message = `Sandbox ${sandbox} uses the secret ${name}; remove the sandbox first, or set another value`;
  return new PlatformError('invalid_state_transition', message, { details: { sandbox } });
}
