import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdtempDisposable, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { rootCertificates } from 'node:tls';
import { writeAuthority, writeLeaf } from './certificate.ts';
import { makeAuthority, openInstallationAuthority, readIssuer } from './installation-authority.ts';
import { LeafCertificates } from './leaf-certificates.ts';
import { subjectHash } from './subject-hash.ts';

const HOUR_MS = 3_600_000;

test('OpenSSL accepts a chain of ours by its strictest rules, with each kind of signing key', async () => {
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

/** Strings of every kind, spaces and capitals where they do not count, and a part with two names. */
const NAMES_OF_AUTHORITIES = [
  '/C=DE/O=  Some   Company Ltd. /CN=ROOT \u00c4 1',
  '/C=US/emailAddress=Ca@Example.COM/CN=x',
  '/DC=com/DC=Example/OU=One+CN=Two/serialNumber=0042',
];

test('an authority is found by the hash of its name that OpenSSL looks for', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'svc-certificates-'));
  const openssl = (...words: readonly string[]) =>
    execFileSync('openssl', words, { cwd: folder.path, encoding: 'utf8', stdio: 'pipe' });
  const certificates = [makeAuthority().certificate, ...rootCertificates.slice(0, 8)];
  for (const mask of ['utf8only', 'nombstr', 'MASK:0x800'])
    for (const name of NAMES_OF_AUTHORITIES) {
      const config = `string_mask = ${mask}\n[req]\nstring_mask = ${mask}\ndistinguished_name = dn\n[dn]\n`;
      await writeFile(join(folder.path, 'config'), config);
      const how = ['-x509', '-newkey', 'ed25519', '-nodes', '-keyout', 'key', '-config', 'config', '-utf8'];
      certificates.push(openssl('req', ...how, '-multivalue-rdn', '-subj', name));
    }
  for (const certificate of certificates) {
    await writeFile(join(folder.path, 'ca.pem'), certificate);
    assert.equal(subjectHash(certificate), openssl('x509', '-hash', '-noout', '-in', 'ca.pem').trim());
  }
});

test('concurrent callers make one authority, and only root can read it', async () => {
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
