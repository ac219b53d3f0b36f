import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdtempDisposable, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeAuthority, writeLeaf } from './certificate.ts';
import { makeAuthority, openInstallationAuthority, readIssuer } from './installation-authority.ts';
import { LeafCertificates } from './leaf-certificates.ts';

const HOUR_MS = 3_600_000;

test('OpenSSL accepts a chain of ours by its strictest rules, whatever kind of key signs', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'svc-certificates-'));
  const { privateKey: leafKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keys = [
    generateKeyPairSync('ec', { namedCurve: 'P-384' }),
    generateKeyPairSync('rsa', { modulusLength: 2048 }),
    generateKeyPairSync('ed25519'),
  ];
  for (const { privateKey } of keys) {
    const validity = { from: new Date(Date.now() - HOUR_MS), until: new Date(Date.UTC(2051, 1, 1)) };
    const ca = writeAuthority('Test ÄÖÜ', privateKey, validity);
    for (const host of ['api.example.com', '192.0.2.7', '2001:db8::7', `${'a'.repeat(60)}.example.com`]) {
      const leaf = writeLeaf(
        host,
        leafKey,
        { key: privateKey, certificate: new X509Certificate(ca) },
        validity,
      );
      await writeFile(join(folder.path, 'ca.pem'), ca);
      await writeFile(join(folder.path, 'leaf.pem'), leaf);
      const purpose = [
        '-x509_strict',
        '-purpose',
        'sslserver',
        host.includes('example') ? '-verify_hostname' : '-verify_ip',
        host,
      ];
      const answer = execFileSync('openssl', ['verify', ...purpose, '-CAfile', 'ca.pem', 'leaf.pem'], {
        cwd: folder.path,
        encoding: 'utf8',
      });
      assert.equal(answer, 'leaf.pem: OK\n');
    }
  }
});

test('an authority is made once, whoever asks first, and only root reads it', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'svc-authority-'));
  const path = join(folder.path, 'egress', 'authority.pem');
  const all = await Promise.all(Array.from({ length: 8 }, () => openInstallationAuthority(path)));
  assert.equal(new Set(all.map(({ certificate }) => certificate)).size, 1);
  assert.deepEqual(await openInstallationAuthority(path), all[0]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(join(folder.path, 'egress')), ['authority.pem'], 'no draft is left');
});

test('an authority that is damaged is replaced', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'svc-authority-'));
  const path = join(folder.path, 'authority.pem');
  const first = await openInstallationAuthority(path);
  await writeFile(path, (await readFile(path, 'utf8')).slice(0, 400));
  const second = await openInstallationAuthority(path);
  assert.notEqual(second.certificate, first.certificate);
  assert.ok(readIssuer(second));
});

test('a key that does not belong to the certificate is refused, and a certificate that may not sign', () => {
  const [one, other] = [makeAuthority(), makeAuthority()];
  assert.throws(() => readIssuer({ certificate: one.certificate, key: other.key }), /does not belong/);
  const issuer = readIssuer(one);
  const leaf = writeLeaf('a.test', issuer.key, issuer, {
    from: new Date(),
    until: new Date(Date.now() + HOUR_MS),
  });
  assert.throws(() => readIssuer({ certificate: leaf, key: one.key }), /not one of an authority/);
});

test('certificates are kept up to the capacity and made anew when half their time is over', () => {
  const leaves = new LeafCertificates({ authority: makeAuthority(), validityHours: 2, capacity: 2 });
  const now = Date.now();
  const first = leaves.contextFor('a.test', now);
  assert.equal(leaves.contextFor('a.test', now + HOUR_MS - 1), first);
  assert.notEqual(leaves.contextFor('a.test', now + HOUR_MS), first);
  const kept = leaves.contextFor('b.test', now);
  leaves.contextFor('a.test', now);
  leaves.contextFor('c.test', now);
  assert.equal(leaves.size, 2);
  assert.notEqual(leaves.contextFor('b.test', now), kept, 'it was the one not asked for the longest');
});
