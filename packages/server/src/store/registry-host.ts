import { PlatformError } from '@svc/contract';

const DOCKER_HUB = 'docker.io';
const DOCKER_HUB_ALIASES = new Set([
  'docker.io',
  'index.docker.io',
  'registry-1.docker.io',
  'registry.docker.io',
  'registry.hub.docker.com',
  'hub.docker.com',
]);
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const HOST = new RegExp(`^(?:${LABEL}(?:\\.${LABEL})*|\\[[0-9a-f:]{2,39}\\])(?::[0-9]{1,5})?$`);

/**
 * The canonical name of a registry: lower case, without scheme and path. Names of Docker Hub become `docker.io`.
 * @throws PlatformError `invalid_request`
 */
export function canonicalRegistryHost(text: string): string {
  const host = text
    .toLowerCase()
    .replace(/^https:\/\//, '')
    .replace(/\/(?:v[12]\/?)?$/, '')
    .replace(/:443$/, '');
  if (DOCKER_HUB_ALIASES.has(host)) return DOCKER_HUB;
  if (HOST.test(host)) return host;
  const reason = 'must be a host with an optional port, such as ghcr.io or registry.example:5000';
  throw new PlatformError('invalid_request', `registry_host ${reason}`, {
    details: { field: 'registry_host', reason },
  });
}
