import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { UriTemplate } from '@modelcontextprotocol/sdk/shared/uriTemplate.js';
import { FILE_TEMPLATE, fileUri, readFileUri } from './resource-uri.ts';

test('every path is found again in its address, which fits the template', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,20}$/);
  const path = fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => `/${text.replaceAll('\0', '')}`);
  fc.assert(
    fc.property(name, name, path, (namespace, sandbox, file) => {
      const uri = fileUri({ namespace, sandbox, path: file });
      assert.deepEqual(readFileUri(uri), { namespace, sandbox, path: file });
    }),
  );
  const made = new UriTemplate(FILE_TEMPLATE).expand({ name: 'box', path: 'srv/app.py', namespace: 'team' });
  assert.equal(made, fileUri({ namespace: 'team', sandbox: 'box', path: '/srv/app.py' }));
});

test('other addresses are not those of files', () => {
  for (const uri of [
    'svc://sandboxes/a',
    'svc://sandboxes/a/files',
    'file:///etc/passwd',
    'svc://sandboxes/a/files/%zz',
  ])
    assert.equal(readFileUri(uri), undefined, uri);
});
