import { isIPv4, isIPv6 } from 'node:net';
import { PlatformError } from './errors.ts';

/** The parts of an image reference. */
export interface Reference {
  /** `docker.io`, `registry.example:5000`; null for images that exist on this host only. */
  readonly registry: string | null;
  readonly repository: string;
  /** Null when a digest pins the content. */
  readonly tag: string | null;
  readonly digest: string | null;
}

/** Names with this prefix are for local images and are never looked up in a registry. */
const LOCAL_NAMESPACE = 'svc';
const DEFAULT_REGISTRY = 'docker.io';
const COMPONENT = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const HOST =
  /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?$/;
const MAX_NAME_LENGTH = 255;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Reads a reference the way Docker does: `python` is `docker.io/library/python:latest`, and with a digest the tag does not count.
 * Throws `invalid_image` naming what is wrong.
 */
export function parseReference(text: string): Reference {
  const shown = text.slice(0, 300);
  if (text === '') throw invalid(shown, 'it is empty');
  if (/\s/.test(text)) throw invalid(shown, 'it contains white space');
  if (text.includes('://')) throw invalid(shown, 'leave out the scheme (https://, docker://)');
  const [named = '', digest, ...more] = text.split('@');
  if (more.length > 0) throw invalid(shown, 'it contains more than one @');
  if (digest !== undefined) checkPinnedDigest(shown, digest);
  const colon = named.lastIndexOf(':');
  const hasTag = colon > named.lastIndexOf('/');
  const name = hasTag ? named.slice(0, colon) : named;
  const tag = hasTag ? named.slice(colon + 1) : 'latest';
  if (!TAG.test(tag)) {
    throw invalid(
      shown,
      `the tag ${JSON.stringify(tag)} may hold letters, digits, _ . - and at most 128 characters`,
    );
  }
  const { registry, repository } = splitName(shown, name);
  return { registry, repository, tag: digest === undefined ? tag : null, digest: digest ?? null };
}

function splitName(shown: string, name: string): { registry: string | null; repository: string } {
  const slash = name.indexOf('/');
  const first = slash === -1 ? '' : name.slice(0, slash);
  const isHost = /[.:]/.test(first) || first === 'localhost';
  const path = isHost ? name.slice(slash + 1) : name;
  if (isHost) checkHost(shown, first);
  checkPath(shown, path);
  if (name.length > MAX_NAME_LENGTH)
    throw invalid(shown, `the name is longer than ${MAX_NAME_LENGTH} characters`);
  if (!isHost && first === LOCAL_NAMESPACE) return { registry: null, repository: path };
  const registry = isHost && first !== 'index.docker.io' ? first.toLowerCase() : DEFAULT_REGISTRY;
  const repository = registry === DEFAULT_REGISTRY && !path.includes('/') ? `library/${path}` : path;
  return { registry, repository };
}

function checkHost(shown: string, host: string): void {
  const bare = host.replace(/:[0-9]+$/, '');
  const lastLabel = bare.slice(bare.lastIndexOf('.') + 1);
  // 127.1, 0x7f.1 and 2130706433 are addresses to a resolver: only the plain form is taken.
  const isOddAddress = /^(?:[0-9]+|0[xX][0-9a-fA-F]*)$/.test(lastLabel) && !isIPv4(bare);
  const isOddIpv6 = bare.startsWith('[') && !isIPv6(bare.slice(1, -1));
  if (!HOST.test(host) || isOddAddress || isOddIpv6) {
    throw invalid(
      shown,
      `the registry ${JSON.stringify(host)} is not a host name or address with an optional port`,
    );
  }
}

function checkPath(shown: string, path: string): void {
  if (path !== path.toLowerCase()) throw invalid(shown, 'the name must be in lower case');
  for (const part of path.split('/')) {
    if (part === '') throw invalid(shown, 'a part of the name is empty');
    if (!COMPONENT.test(part)) {
      throw invalid(
        shown,
        `${JSON.stringify(part)} may hold lower-case letters and digits, with single . _ - (or __) in between`,
      );
    }
  }
  if (/^[0-9a-f]{64}$/.test(path)) throw invalid(shown, 'an image id starts with sha256:');
}

function checkPinnedDigest(shown: string, digest: string): void {
  if (DIGEST.test(digest)) return;
  const isOther = /^[a-z0-9]+:/.test(digest) && !digest.startsWith('sha256:');
  throw invalid(
    shown,
    isOther ? 'only sha256 digests are supported' : 'the digest must be sha256: and 64 lower-case hex digits',
  );
}

function invalid(shown: string, why: string): PlatformError {
  return new PlatformError('invalid_image', `${JSON.stringify(shown)} is not an image reference: ${why}`, {
    details: { field: 'image.reference', reference: shown },
  });
}
