import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import fc from 'fast-check';
import { parseReference } from '@svc/contract/image-reference';
import { formatReference, isHostLocal, isPrivateAddress } from './reference.ts';

const DIGEST = `sha256:${'a1'.repeat(32)}`;

suite('image references', () => {
  test('are completed the way Docker does it', () => {
    const cases: Record<string, string> = {
      python: 'docker.io/library/python:latest',
      'python:3.12': 'docker.io/library/python:3.12',
      'microsandbox/python': 'docker.io/microsandbox/python:latest',
      'docker.io/python': 'docker.io/library/python:latest',
      'index.docker.io/library/python': 'docker.io/library/python:latest',
      'localhost/x': 'localhost/x:latest',
      'localhost:5000/x/y:z': 'localhost:5000/x/y:z',
      'Registry.Example/x': 'registry.example/x:latest',
      '[::1]:5000/x': '[::1]:5000/x:latest',
      '10.0.0.1/x': '10.0.0.1/x:latest',
      [`python:3.12@${DIGEST}`]: `docker.io/library/python@${DIGEST}`,
      'a__b/c-d.e_f': 'docker.io/a__b/c-d.e_f:latest',
      'svc/python': 'svc/python:latest',
      'svc/python:3': 'svc/python:3',
    };
    for (const [text, expected] of Object.entries(cases)) {
      assert.equal(formatReference(parseReference(text)), expected);
      assert.equal(formatReference(parseReference(expected)), expected);
    }
    assert.equal(parseReference('svc/python').registry, null);
    assert.equal(parseReference('docker.io/svc/python').registry, 'docker.io');
  });

  test('malformed references are refused with the reason', () => {
    const cases: Record<string, RegExp> = {
      '': /empty/,
      'a b': /white space/,
      'https://x/y': /scheme/,
      'Python/x': /lower case/,
      'x/Python': /lower case/,
      'x:': /tag ""/,
      [`x:${'t'.repeat(129)}`]: /tag/,
      'x:-t': /tag/,
      'x@sha256:abc': /64 lower-case hex/,
      [`x@sha512:${'a'.repeat(128)}`]: /only sha256/,
      [`x@${DIGEST}@${DIGEST}`]: /more than one @/,
      'x//y': /part of the name is empty/,
      'x/': /part of the name is empty/,
      '/x': /part of the name is empty/,
      'x/../y': /may hold lower-case/,
      '-x': /may hold lower-case/,
      'x/y--$z': /may hold lower-case/,
      ['a'.repeat(64)]: /starts with sha256/,
      ['a/'.repeat(150) + 'b']: /longer than 255/,
      '127.1:5000/x': /not a host name/,
      '2130706433:80/x': /not a host name/,
      '0x7f.1/x': /not a host name/,
      '[zz]:1/x': /not a host name/,
      'ex_ample.com/x': /not a host name/,
    };
    for (const [text, reason] of Object.entries(cases)) {
      assert.throws(
        () => parseReference(text),
        (error) => PlatformError.is(error, 'invalid_image') && reason.test(error.message),
        text,
      );
    }
  });

  test('never become an option, a path upwards or several words, for any input', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({
            unit: fc.constantFrom('a', 'A', '0', '.', '/', ':', '@', '-', '_', '[', ']', ' ', '\n'),
          }),
        ),
        (text) => {
          try {
            const formatted = formatReference(parseReference(text));
            assert.match(formatted, /^[a-z0-9[][A-Za-z0-9./:@_[\]-]*$/);
            assert.ok(!formatted.split(/[/:@]/).includes('..'));
            assert.equal(formatReference(parseReference(formatted)), formatted);
          } catch (error) {
            if (!PlatformError.is(error, 'invalid_image')) throw error;
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('tell when they name an address of a private network', () => {
    for (const registry of ['10.1.2.3', '192.168.1.1:5000', '172.16.0.1', '[fd00::1]:5000', '100.64.0.1'])
      assert.equal(isPrivateAddress(registry), true, registry);
    for (const registry of ['docker.io', '1.1.1.1:5000', 'fd.example', '[2606:4700::1111]', '10.example.com'])
      assert.equal(isPrivateAddress(registry), false, registry);
  });

  test('tell when they lead to the host itself', () => {
    for (const host of [
      'localhost',
      'localhost:5000',
      'x.localhost',
      '127.0.0.1',
      '127.9.9.9:1',
      '0.0.0.0',
      '169.254.169.254',
      '[::1]:5000',
      '[::]',
      '[fe80::1]',
      '[::ffff:127.0.0.1]',
      '[0:0:0:0:0:0:0:1]',
    ]) {
      assert.ok(isHostLocal(host), host);
    }
    for (const host of [
      'docker.io',
      '10.0.0.1:5000',
      '192.168.1.2',
      '[2001:db8::1]',
      'localhost.example.com',
    ]) {
      assert.ok(!isHostLocal(host), host);
    }
  });
});
