// Uses the published client as a library, and prints what it saw as JSON.
const { Sandbox, Volume } = await import(process.env.MSB_LIBRARY);

const [image] = process.argv.slice(2);
const codeOf = (promise) =>
  promise.then(
    () => 'no error',
    (error) => error.code,
  );
const text = (bytes) => Buffer.from(bytes).toString();
const seen = {};

const sandbox = await Sandbox.builder('sdk')
  .image(image)
  .env('A', '1')
  .workdir('/tmp')
  .label('from', 'sdk')
  .create();
seen.exec = await sandbox
  .exec('sh', ['-c', 'echo out; echo err >&2; pwd; echo $A; exit 5'])
  .then((output) => ({
    code: output.code,
    stdout: output.stdout(),
    stderr: output.stderr(),
  }));
seen.stdin = (await sandbox.execWith('cat', (options) => options.stdinBytes(Buffer.from('bytes')))).stdout();
seen.user = (await sandbox.execWith('id', (options) => options.args(['-u']).user('1000:1000'))).stdout();
seen.env = (
  await sandbox.execWith('sh', (options) => options.args(['-c', 'echo $A']).env('A', '2'))
).stdout();
seen.timeout = await codeOf(sandbox.execWith('sleep', (options) => options.args(['30']).timeout(300)));

const stream = await sandbox.execStreamWith('sh', (options) =>
  options.args(['-c', 'read x; echo got $x; kill -9 $$']).stdinPipe(),
);
const stdin = await stream.takeStdin();
await stdin.write('typed\n');
seen.stream = [];
for await (const event of stream) {
  seen.stream.push(
    event.kind === 'stdout' ? text(event.data) : event.kind === 'exited' ? event.code : event.kind,
  );
}

const files = sandbox.fs();
const big = Buffer.alloc(7_000_000, 'abcdefg');
await files.mkdir('/tmp/d/e');
await files.write('/tmp/d/big', big);
const sink = await files.writeStream('/tmp/d/streamed');
for (let part = 0; part < 3; part++) await sink.write(`part ${part};`);
await sink.close();
await files.copy('/tmp/d/streamed', '/tmp/d/copied');
await files.rename('/tmp/d/copied', '/tmp/d/renamed');
seen.files = {
  isSame: Buffer.from(await files.read('/tmp/d/big')).equals(big),
  isSameStreamed: Buffer.from(await (await files.readStream('/tmp/d/big')).collect()).equals(big),
  streamed: await files.readToString('/tmp/d/renamed'),
  names: (await files.list('/tmp/d')).map((entry) => entry.path).sort(),
  size: (await files.stat('/tmp/d/big')).size,
  exists: [await files.exists('/tmp/d/big'), await files.exists('/tmp/d/none')],
  missing: await codeOf(files.read('/tmp/d/none')),
};
await files.remove('/tmp/d/big');
await files.removeDir('/tmp/d');
await files.write('/kept', 'on its disk');
seen.files.isGone = !(await files.exists('/tmp/d'));

const ssh = await sandbox.ssh().openClient({ sftp: true });
const output = await ssh.exec('echo over ssh; exit 6');
const sftp = await ssh.sftp();
await sftp.mkdir('/tmp/s');
await sftp.write('/tmp/s/f', Buffer.from('by sftp'));
await sftp.symlink('/tmp/s/f', '/tmp/s/link');
await sftp.rename('/tmp/s/f', '/tmp/s/g');
seen.ssh = {
  status: output.status,
  stdout: text(output.stdout),
  read: text(await sftp.read('/tmp/s/g')),
  link: await sftp.readLink('/tmp/s/link'),
  real: await sftp.realPath('/tmp/s/../s/g'),
};
await sftp.close();
await ssh.close();

// Older versions know volumes of this machine only, whose files are none of the server's.
seen.volume = Volume.getDefault === undefined ? null : await useDefaultVolume();
const made = await Volume.builder('sdk-data').quota(2048).label('k', 'v').create();
seen.quota = (await Volume.get('sdk-data')).quotaMib;
seen.volumeTwice = await codeOf(Volume.builder('sdk-data').create());
await Volume.remove(made.name);

for (const index of [1, 2]) {
  await Sandbox.builder(`page-${index}`).image(image).label('page', 'yes').create();
}
const first = await Sandbox.listWith((list) => list.label('page', 'yes').limit(1));
const second = await Sandbox.listWith((list) => list.label('page', 'yes').limit(1).cursor(first.nextCursor));
seen.pages = [first, second].map((page) => [
  page.sandboxes.map(({ name }) => name),
  page.nextCursor !== undefined && page.nextCursor !== null,
]);

const logs = await (await Sandbox.get('sdk')).logStream({ sources: ['system'], follow: true });
const entry = await logs.recv();
const resumed = await (
  await Sandbox.get('sdk')
).logStream({ sources: ['system'], follow: true, fromCursor: entry.cursor });
const next = await resumed.recv();
seen.logs = [entry.text(), next.text()];

const handle = await Sandbox.get('sdk');
await handle.stop();
seen.stopped = (await Sandbox.get('sdk')).status;
await (await Sandbox.get('sdk')).start();
seen.restarted = (await Sandbox.get('sdk')).status;
seen.taken = await codeOf(Sandbox.builder('sdk').image(image).create());
// Older versions cannot.
const again = await Sandbox.builder('sdk').image(image).connectOrCreate?.();
seen.reused = again === undefined ? null : (await again.exec('cat', ['/kept'])).stdout();
const last = await Sandbox.get('sdk');
// Older versions have another name for it.
await (last.destroy ?? last.remove).call(last);
seen.removed = await codeOf(Sandbox.get('sdk'));
seen.invalid = await codeOf(Sandbox.builder('invalid').image(image).memory(1).create());

process.stdout.write(JSON.stringify(seen), () => process.exit(0));

async function useDefaultVolume() {
  const volume = (await Volume.getDefault()).fs();
  await volume.mkdir('docs');
  await volume.write('docs/a.txt', 'first');
  const upload = await volume.writeStream('docs/b.txt');
  await upload.write('second ');
  await upload.write('half');
  await upload.close();
  await volume.copy('docs/b.txt', 'docs/c.txt');
  await volume.rename('docs/c.txt', 'docs/d.txt');
  const seen = {
    names: (await volume.list('docs')).map((entry) => entry.path).sort(),
    root: (await volume.list('')).map((entry) => entry.path),
    a: await volume.readToString('docs/a.txt'),
    d: text(await (await volume.readStream('docs/d.txt')).collect()),
    size: (await volume.stat('docs/a.txt')).size,
    exists: [await volume.exists('docs/a.txt'), await volume.exists('docs/none')],
    missing: await codeOf(volume.read('docs/none')),
    escape: await codeOf(volume.read('../../etc/passwd')),
  };
  await volume.remove('docs/a.txt');
  await volume.removeDir('docs');
  seen.isGone = !(await volume.exists('docs'));
  return seen;
}
