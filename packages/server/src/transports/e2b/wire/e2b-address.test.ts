import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromE2bId, isE2bHost, rewriteUrl, toE2bId } from './e2b-address.ts';

const ID = '0a1b2c3d-0000-4000-8000-00000000000f';
const HEX = '0a1b2c3d00004000800000000000000f';

test('an id without hyphens stands for one sandbox, and other texts for none', () => {
  assert.equal(toE2bId(ID), HEX);
  assert.equal(fromE2bId(HEX), ID);
  for (const text of [undefined, '', ID, HEX.slice(1), `${HEX}0`, HEX.toUpperCase(), 'i'.repeat(32)])
    assert.equal(fromE2bId(text), undefined, text);
});

test('requests of E2B are told from others by host, header and path', () => {
  const at = (url: string, headers: Record<string, string> = {}) => rewriteUrl('p.test', { url, headers });
  assert.equal(at('/v2/sandboxes', { 'x-api-key': 'k' }), '/e2b/control/v2/sandboxes');
  assert.equal(at('/files?path=a', { 'e2b-sandbox-id': HEX }), '/e2b/envd/files?path=a');
  const code = { 'e2b-sandbox-id': HEX, 'e2b-sandbox-port': '49999' };
  assert.equal(at('/contexts/x/restart', code), '/e2b/code/contexts/x/restart');
  assert.equal(at('/process.Process/Start'), '/e2b/envd/process.Process/Start');
  assert.equal(at('/files?signature=v1_x'), '/e2b/envd/files?signature=v1_x');
  assert.equal(at('/volumecontent/x/dir'), '/e2b/control/volumecontent/x/dir');
  for (const url of ['/sandboxes', '/v1/sandboxes', '/files', '/health', '/volumes', '/api/v1/health', '/'])
    assert.equal(at(url), url);
  assert.equal(at('/v1/sandboxes', { 'x-api-key': 'k' }), '/v1/sandboxes');
});

test('a host with an id wins over a header, and names of previews stay previews', () => {
  const headers: Record<string, string> = { host: `49983-${HEX}.p.test:443`, 'e2b-sandbox-id': 'other' };
  assert.equal(rewriteUrl('p.test', { url: '/health', headers }), '/e2b/envd/health');
  assert.equal(headers['e2b-sandbox-id'], HEX);
  assert.equal(rewriteUrl('p.test', { url: '/x', headers: { host: 'api.p.test' } }), '/e2b/control/x');
  for (const host of ['49983-web.p.test', `8000-${HEX}.p.test`, `49983-${HEX}.q.test`, 'p.test', undefined])
    assert.equal(isE2bHost('p.test', host), false, host);
  assert.equal(isE2bHost(null, 'api.p.test'), false);
});
