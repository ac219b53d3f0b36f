import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registryFailure } from './registry-failure.ts';

const REQUEST = {
  name: 'reg.test/app:v1',
  registry: 'reg.test',
  hasCredentials: true,
  isPublicOnly: false,
  secrets: ['hunter2', 'YWxpY2U6aHVudGVyMg=='],
};
const fatal = (message: string) => `time="2024-01-01T00:00:00Z" level=fatal msg="${message}"\n`;

test('errors of skopeo become one sentence with an error code', () => {
  const cases: readonly (readonly [string, string, string, RegExp])[] = [
    [
      fatal('reading manifest v1 in reg.test/app: manifest unknown: manifest unknown'),
      'image_not_found',
      'not_found',
      /does not exist/,
    ],
    [
      fatal('unable to retrieve auth token: invalid username/password: unauthorized'),
      'image_pull_failed',
      'unauthorized',
      /refused the credentials/,
    ],
    [
      fatal('dial tcp: lookup reg.test on 192.0.2.1:53: no such host'),
      'image_pull_failed',
      'unknown_host',
      /does not resolve/,
    ],
    [
      fatal('dial tcp 192.0.2.1:443: connect: connection refused'),
      'image_pull_failed',
      'unreachable',
      /refuses connections/,
    ],
    [fatal('dial tcp 192.0.2.1:443: i/o timeout'), 'image_pull_failed', 'unreachable', /does not answer/],
    [
      fatal('http: server gave HTTP response to HTTPS client'),
      'image_pull_failed',
      'plain_http',
      /insecure registries/,
    ],
    [fatal('x509: certificate signed by unknown authority'), 'image_pull_failed', 'tls', /not trusted/],
    [
      fatal('toomanyrequests: You have reached your pull rate limit'),
      'image_pull_failed',
      'rate_limited',
      /too many requests/,
    ],
    [
      fatal('write /pull/layout/oci-put-blob1: no space left on device'),
      'insufficient_storage',
      'no_space',
      /prune/,
    ],
    ['bwrap: execvp skopeo: No such file or directory\n', 'unavailable', 'no_skopeo', /svc doctor/],
    ['something odd\n', 'image_pull_failed', 'unknown', /something odd/],
  ];
  for (const [stderr, code, reason, sentence] of cases) {
    const error = registryFailure(stderr, REQUEST);
    assert.deepEqual([error.code, error.details?.['reason']], [code, reason], stderr);
    assert.match(error.message, sentence);
  }
});

test('a secret is not shown, wherever it turns up', () => {
  const error = registryFailure(fatal('odd: hunter2 and YWxpY2U6aHVudGVyMg== here'), REQUEST);
  assert.ok(
    !/hunter2|YWxpY2/.test(`${error.message} ${JSON.stringify(error.details)} ${String(error.cause)}`),
  );
});

test('a registry that may lie in a private network is told how to be named', () => {
  const asked = { ...REQUEST, isPublicOnly: true };
  assert.match(registryFailure('dial tcp: no such host', asked).message, /--trusted-registry/);
  assert.doesNotMatch(registryFailure('manifest unknown', asked).message, /--trusted-registry/);
  assert.doesNotMatch(registryFailure('dial tcp: no such host', REQUEST).message, /--trusted-registry/);
});
