import type { CreateSandboxRequest } from '@svc/contract/rest';
import { requireKnownOptions, type OptionNames } from '../client/known-options.ts';
import { toHostPattern } from '../resources/host-pattern.ts';

type Secrets = NonNullable<NonNullable<CreateSandboxRequest['network']>['secrets']>;
export type SecretEntry = Extract<Secrets, readonly unknown[]>[number];

/** A value that a sandbox uses towards certain hosts and never holds. */
export interface SecretOption {
  /** `api.example.com`, `*.example.com` for it and all below it, or `*`. */
  readonly hosts: readonly string[];
  /** Stored encrypted by the server, and never shown again. */
  readonly value?: string;
  /** Instead of a value: the name of a secret of the organization. */
  readonly stored?: string;
  /** What processes see; `$SVC_` and the name of the variable unless given. */
  readonly placeholder?: string;
  readonly injection?: NonNullable<SecretEntry['injection']>;
}

const OPTIONS: OptionNames<SecretOption> = {
  hosts: true,
  value: true,
  stored: true,
  placeholder: true,
  injection: true,
};

/** One secret in the form of the REST API. */
export function secretEntry(name: string, secret: SecretOption): SecretEntry {
  requireKnownOptions(secret, OPTIONS);
  const { hosts, value, stored, placeholder, injection } = secret;
  return {
    env_var: name,
    ...(placeholder === undefined ? {} : { placeholder }),
    allowed_hosts: hosts.map(toHostPattern),
    ...(value === undefined ? {} : { value }),
    ...(stored === undefined ? {} : { source: { type: 'store', reference: stored } }),
    ...(injection === undefined ? {} : { injection }),
  };
}
