import type { RestOperation } from './rest-operation.ts';

export const ORGANIZATION_PREFIX = '/orgs/{slug}';

/** Every address of an operation, below `/v1`, with the credential that it takes there. */
export function pathsOf({ path, audience }: Pick<RestOperation, 'path' | 'audience'>): readonly {
  readonly path: string;
  readonly audience: 'anyone' | 'key' | 'user';
}[] {
  if (audience !== 'both') return [{ path, audience }];
  return [
    { path, audience: 'key' },
    { path: `${ORGANIZATION_PREFIX}${path}`, audience: 'user' },
  ];
}
