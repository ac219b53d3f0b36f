import { PlatformError, type ErrorCode } from '@svc/contract/errors';

export interface FailedRequest {
  /** The image as the user knows it. */
  readonly name: string;
  readonly registry: string;
  readonly hasCredentials: boolean;
  /** The request came from a network that reaches no private address. */
  readonly isPublicOnly: boolean;
  /** Removed from every message. */
  readonly secrets: readonly string[];
}

interface Reason {
  readonly pattern: RegExp;
  readonly reason: string;
  readonly code: ErrorCode;
  readonly sentence: (request: FailedRequest) => string;
}

/** The first match is the reason that is reported. */
const REASONS: readonly Reason[] = [
  {
    pattern: /execvp skopeo/i,
    reason: 'no_skopeo',
    code: 'unavailable',
    sentence: () => 'skopeo is missing on this host; run `svc doctor` to see how to install it',
  },
  {
    pattern: /no space left on device/i,
    reason: 'no_space',
    code: 'insufficient_storage',
    sentence: () => 'The disk that holds images is full; free space with `svc image prune` and try again',
  },
  {
    pattern: /toomanyrequests|too many requests|rate limit/i,
    reason: 'rate_limited',
    code: 'image_pull_failed',
    sentence: ({ registry }) =>
      `${registry} answers that there were too many requests; wait, or pull with credentials`,
  },
  {
    pattern:
      /unauthorized|authentication required|invalid username\/password|denied|status(?: code)? 40[13]|40[13] \(/i,
    reason: 'unauthorized',
    code: 'image_pull_failed',
    sentence: ({ name, registry, hasCredentials }) =>
      hasCredentials
        ? `${registry} refused the credentials for ${name}; check the user name and the password`
        : `${registry} wants credentials for ${name}, or it does not exist; log in to the registry first`,
  },
  {
    pattern:
      /manifest unknown|name unknown|not known to registry|repository name not known|status(?: code)? 404|404 \(/i,
    reason: 'not_found',
    code: 'image_not_found',
    sentence: ({ name, registry }) => `${name} does not exist in ${registry}; check the name and the tag`,
  },
  {
    pattern: /no such host|server misbehaving|temporary failure in name resolution/i,
    reason: 'unknown_host',
    code: 'image_pull_failed',
    sentence: ({ registry }) => `The registry ${registry} cannot be reached: its name does not resolve`,
  },
  {
    pattern: /connection refused/i,
    reason: 'unreachable',
    code: 'image_pull_failed',
    sentence: ({ registry }) => `The registry ${registry} cannot be reached: it refuses connections`,
  },
  {
    pattern: /server gave HTTP response to HTTPS client/i,
    reason: 'plain_http',
    code: 'image_pull_failed',
    sentence: ({ registry }) =>
      `${registry} speaks plain HTTP; allow it in the list of insecure registries if that is intended`,
  },
  {
    pattern: /x509|certificate|tls:/i,
    reason: 'tls',
    code: 'image_pull_failed',
    sentence: ({ registry }) =>
      `The certificate of ${registry} is not trusted by this host; add its authority to the host`,
  },
  {
    pattern:
      /i\/o timeout|deadline exceeded|timed? ?out|network is unreachable|no route to host|connection reset|unexpected EOF|: EOF/i,
    reason: 'unreachable',
    code: 'image_pull_failed',
    sentence: ({ registry }) =>
      `The registry ${registry} cannot be reached: the network or the registry does not answer`,
  },
  {
    pattern: /digest did not match|doesn't match its digest|does not match|digest mismatch|unexpected size/i,
    reason: 'digest_mismatch',
    code: 'invalid_image',
    sentence: ({ name, registry }) =>
      `What ${registry} sent for ${name} does not match its digest; nothing was kept`,
  },
];

/** The failures of a registry in a private network that the operator did not allow. */
const HIDDEN_REASONS: ReadonlySet<string> = new Set(['unknown_host', 'unreachable']);
const PRIVATE_HINT =
  '; one in a private network has to be named with `svc engine start --trusted-registry HOST`';

/** The error for a failed skopeo, with one sentence about its reason. */
export function registryFailure(stderr: string, request: FailedRequest): PlatformError {
  const text = withoutSecrets(lastMessage(stderr), request.secrets);
  const known = REASONS.find(({ pattern }) => pattern.test(text));
  const code = known?.code ?? 'image_pull_failed';
  const sentence =
    (known?.sentence(request) ?? `Pulling ${request.name} failed: ${text.slice(-300)}`) +
    (request.isPublicOnly && HIDDEN_REASONS.has(known?.reason ?? '') ? PRIVATE_HINT : '');
  return new PlatformError(code, sentence, {
    details: { reference: request.name, registry: request.registry, reason: known?.reason ?? 'unknown' },
    cause: new Error(text),
  });
}

/** skopeo ends with `time=… level=fatal msg="…"`; bwrap and a crash with plain lines. */
function lastMessage(stderr: string): string {
  const fatal = [...stderr.matchAll(/msg="((?:[^"\\]|\\.)*)"/g)].at(-1)?.[1];
  return (fatal?.replaceAll('\\"', '"') ?? stderr.trim().split('\n').at(-1) ?? '').slice(-2000);
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret !== '')
    .reduce((left, secret) => left.replaceAll(secret, '…'), text);
}
