import assert from 'node:assert/strict';
import { appendFile, chown, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Patch } from '@svc/contract';
import { addGit, addPython, copyLibraries, copyProgram } from './interpreter-images.ts';
import { addCurlAndNode, API, EVIL, HttpsInternet, PLACEHOLDER, VALUE } from './https-internet.ts';
import { addPythonPackages, GREETING, makeMirror } from './make-mirror.ts';
import { CLASSES, startSandbox, type TestSandbox } from './sandbox-fixture.ts';

/** Programs that people use, as Debian ships them, behind a proxy that reads what they say. */

let folder: string;
let world: HttpsInternet;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-mirror-'));
  await makeMirror(folder);
  world = await HttpsInternet.start({ folder, password: VALUE }, addClients);
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const ENCODED = encodeURIComponent(PLACEHOLDER);
const URL = `https://${API}/private`;
const urllib = `
import os, base64, urllib.request as r
key = base64.b64encode(('me:' + os.environ['API_KEY']).encode()).decode()
print(r.urlopen(r.Request('${URL}/simple/svc-hello/', headers={'Authorization': 'Basic ' + key})).status)`;
const requests = `
import os, requests
print(requests.get('${URL}/simple/svc-hello/', auth=('me', os.environ['API_KEY'])).status_code)`;
const fetching = `
const authorization = 'Basic ' + Buffer.from('me:' + process.env.API_KEY).toString('base64');
fetch('${URL}/simple/svc-hello/', { headers: { authorization } }).then((answer) => console.log(answer.status))`;
/** How many of the authorities that it believes in it had to load for this connection. */
const BY_HASH = `
import socket, ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(capath='/etc/ssl/certs')
context.wrap_socket(socket.create_connection(('${API}', 443)), server_hostname='${API}').close()
print(len(context.get_ca_certs()))`;
const quoted = (script: string) => `'${script.replaceAll("'", String.raw`'\''`)}'`;

/** What to type, and what it says in the end. Each of them shows the secret as the password of a user. */
const CLIENTS: Readonly<Record<string, readonly [line: string, said: string]>> = {
  curl: [`curl -sS -o /dev/null -w '%{http_code}\n' -u "me:$API_KEY" ${URL}/simple/svc-hello/`, '200\n'],
  'urllib of Python': [`python3 -c ${quoted(urllib)}`, '200\n'],
  'requests of Python': [`python3 -c ${quoted(requests)}`, '200\n'],
  'fetch of Node': [`node -e ${quoted(fetching)}`, '200\n'],
  git: [
    `git clone -q https://me:${quoted(ENCODED)}@${API}/private/git/project.git /tmp/project && cat /tmp/project/README`,
    `${GREETING}\n`,
  ],
  pip: [
    `python3 -m pip install -q --disable-pip-version-check --no-cache-dir --root-user-action ignore \
      --index-url https://me:${quoted(ENCODED)}@${API}/private/simple/ --target /tmp/modules svc-hello &&
      PYTHONPATH=/tmp/modules python3 -m svc_hello`,
    `${GREETING}\n`,
  ],
  'apt over https': [aptLine(`https://${API}/private/apt`), `${GREETING}\n`],
  'apt over http': [aptLine(`http://${EVIL}/apt`), `${GREETING}\n`],
};

/** As an administrator would set it up: a list of sources, and the password in a file of its own. */
function aptLine(source: string): string {
  return `cd "$(mktemp -d /tmp/apt-XXXXXX)" && chmod 777 . &&
    echo 'deb [trusted=yes] ${source} ./' > /etc/apt/sources.list &&
    echo "machine ${API} login me password $API_KEY" > /etc/apt/auth.conf &&
    apt-get -qq update && apt-get -qq download svc-hello > /dev/null &&
    /usr/bin/dpkg-deb --fsys-tarfile svc-hello_1.0_all.deb | tar -xO ./usr/share/svc-hello`;
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    let sandbox: TestSandbox;
    before(async () => {
      sandbox = await world.startClient(isolation, world.network());
    });
    after(() => sandbox.remove());

    for (const [name, [line, said]] of Object.entries(CLIENTS)) {
      test(`${name} works as it is, with a secret that it does not hold`, async () => {
        const { code, stdout, stderr } = await sandbox.sh(line);
        assert.deepEqual([code, stdout], [0, said], stderr);
      });
    }

    test('a program that looks for authorities by the hash of their names finds ours', async () => {
      const { code, stdout, stderr } = await sandbox.sh(`python3 -c ${quoted(BY_HASH)}`);
      assert.deepEqual([code, stdout], [0, '1\n'], stderr);
    });

    test('each of them was read on its way', async () => {
      const { stdout } = await sandbox.sh(
        `curl -sS -o /dev/null -w '%{ssl_verify_result} %{certs}' https://${API}/`,
      );
      assert.match(stdout, /^0 .*Issuer:[^\n]*svc/s);
    });
  });
}

const OLD = '-----OLD-----\n';
const text = (path: string, content = OLD): Patch => ({ type: 'text', path, content });
const link = (path: string, target: string): Patch => ({ type: 'symlink', link: path, target });
const folderAt = (path: string): Patch => ({ type: 'mkdir', path });
const [DEBIAN, ALPINE, RED_HAT, EXTRACTED] = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/ssl/cert.pem',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
];
const inRedHat = ['/etc/pki/tls/certs', '/etc/pki/ca-trust/extracted/pem'].map(folderAt);

/** How systems lay out whom they trust, and the files that must name our authority too. */
const LAYOUTS: Readonly<Record<string, readonly [patches: readonly Patch[], trusted: readonly string[]]>> = {
  'no bundle at all': [[], [DEBIAN]],
  'Debian, with a bundle that ends without a line end': [
    [folderAt('/etc/ssl/certs'), text(DEBIAN, OLD.trim())],
    [DEBIAN],
  ],
  'Alpine, cert.pem as a link': [
    [folderAt('/etc/ssl/certs'), text(DEBIAN), link(ALPINE, 'certs/ca-certificates.crt')],
    [DEBIAN, ALPINE],
  ],
  'Alpine, cert.pem as a file of its own': [
    [folderAt('/etc/ssl/certs'), text(DEBIAN), text(ALPINE)],
    [DEBIAN, ALPINE],
  ],
  'Red Hat, everything linked to what was extracted': [
    [
      ...inRedHat,
      text(EXTRACTED),
      link(RED_HAT, EXTRACTED),
      folderAt('/etc/ssl'),
      link('/etc/ssl/certs', '../pki/tls/certs'),
      link('/etc/pki/tls/cert.pem', 'certs/ca-bundle.crt'),
    ],
    [DEBIAN, RED_HAT, EXTRACTED, '/etc/pki/tls/cert.pem'],
  ],
  'Red Hat, ca-bundle.crt as a file of its own': [
    [...inRedHat, text(EXTRACTED), text(RED_HAT)],
    [DEBIAN, RED_HAT, EXTRACTED],
  ],
};

test('the authority is trusted in every layout, once, beside those of the image, and links stay links', async () => {
  const layouts = Object.entries(LAYOUTS).map(async ([title, [patches, trusted]]) => {
    const network = { tls: { enabled: true } };
    const sandbox = await startSandbox(world.engine, 'container', { network, patches: [...patches] });
    await world.engine.client.stopSandbox(sandbox.id);
    await world.engine.client.startSandbox(sandbox.id);
    for (const path of trusted) {
      const { stdout } = await sandbox.sh(`cat ${path}`);
      assert.equal(stdout.split('BEGIN CERTIFICATE').length, 2, `${title}: ${path} names it once`);
      if (patches.length > 0) assert.ok(stdout.startsWith(OLD), `${title}: ${path} keeps what it had`);
    }
    const found = await sandbox.sh('cd /etc/ssl/certs && find . -name "*.[0-9]" -exec readlink {} +');
    assert.equal(found.stdout, '/usr/local/share/ca-certificates/svc.crt\n', `${title}: one link by hash`);
    for (const patch of patches) {
      if (patch.type !== 'symlink') continue;
      const { stdout } = await sandbox.sh(`readlink ${patch.link}`);
      assert.equal(stdout.trim(), patch.target, title);
    }
    const { stdout } = await sandbox.sh('env');
    for (const name of [
      'SSL_CERT_FILE',
      'REQUESTS_CA_BUNDLE',
      'CURL_CA_BUNDLE',
      'GIT_SSL_CAINFO',
      'PIP_CERT',
    ])
      assert.match(stdout, new RegExp(`^${name}=${DEBIAN}$`, 'm'));
    assert.match(stdout, /^NODE_EXTRA_CA_CERTS=\/usr\/local\/share\/ca-certificates\/svc.crt$/m);
    await sandbox.remove();
  });
  await Promise.all(layouts);
});

/** curl, Node, Python with requests and pip, git and apt, with what they need of a system. */
async function addClients(root: string): Promise<void> {
  await addCurlAndNode(root);
  await addPython(root);
  await addPythonPackages(root);
  await addGit(root);
  await addApt(root);
}

async function addApt(root: string): Promise<void> {
  for (const name of ['apt-get', 'apt-config', 'dpkg', 'dpkg-deb'])
    await copyProgram(root, `/usr/bin/${name}`, name);
  await cp('/usr/share/dpkg', join(root, 'usr/share/dpkg'), { recursive: true });
  await mkdir(join(root, 'usr/lib/apt/methods'), { recursive: true });
  for (const name of ['http', 'https', 'store', 'copy', 'file', 'gpgv']) {
    const method = `/usr/lib/apt/methods/${name}`;
    await cp(method, join(root, method), { verbatimSymlinks: true });
    await copyLibraries(root, method);
  }
  const folders = [
    'etc/apt/apt.conf.d',
    'etc/apt/preferences.d',
    'var/lib/apt/lists/partial',
    'var/cache/apt/archives/partial',
  ];
  for (const each of [...folders, 'var/lib/dpkg']) await mkdir(join(root, each), { recursive: true });
  await writeFile(join(root, 'var/lib/dpkg/status'), '');
  // apt downloads as a user of its own.
  const aptUser = 42;
  await appendFile(join(root, 'etc/passwd'), `_apt:x:${aptUser}:65534::/nonexistent:/bin/false\n`);
  for (const each of folders.slice(2)) await chown(join(root, each), aptUser, 0);
}
