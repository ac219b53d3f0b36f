import { InvalidArgumentError } from 'commander';
import type { SecretEntry } from '@svc/sdk';

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const HOST = /^(\*|(\*\.)?[A-Za-z0-9_.-]+)$/;

/**
 * `ENV@HOST[,HOST]`, repeatable: the secret of the organization with the name of the variable. Values are never arguments, which
 * every user of the machine can read.
 */
export function collectSecret(text: string, earlier: readonly SecretEntry[] = []): readonly SecretEntry[] {
  const [name = '', ...rest] = text.split('@');
  const hosts = rest.join('@').split(',');
  if (!NAME.test(name) || !hosts.every((host) => HOST.test(host)))
    throw new InvalidArgumentError('Give ENV@HOST[,HOST], a host as api.example.com, *.example.com or *.');
  const entry: SecretEntry = {
    env_var: name,
    value: '',
    source: { type: 'env', var: name },
    allowed_hosts: hosts.map(toPattern),
  };
  return [...earlier, entry];
}

/** A host to which a secret of the organization may be sent; repeatable. `*` is refused, because it gives no protection. */
export function collectSecretHost(text: string, earlier: readonly string[] = []): readonly string[] {
  if (text === '*' || !HOST.test(text))
    throw new InvalidArgumentError(
      'Give a host as api.example.com, or *.example.com for it and all below it.',
    );
  return [...earlier, text];
}

function toPattern(host: string): SecretEntry['allowed_hosts'][number] {
  if (host === '*') return { type: 'any' };
  return { type: host.startsWith('*.') ? 'wildcard' : 'exact', value: host };
}
