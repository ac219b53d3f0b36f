/**
 * One walk through the SDK, for Node 22 and for browsers alike: plain JavaScript on the built package. Returns what it saw.
 */
export async function useSdk({ Client, Sandbox, SvcError, Volume }, { apiUrl, apiKey, image }) {
  const client = new Client({ apiUrl, apiKey });
  const seen = {};
  const sandbox = await Sandbox.create({ client, image });
  try {
    seen.exec = (await sandbox.exec('echo', ['hello'])).text();
    seen.code = (await sandbox.shell('exit 3')).code;
    seen.input = await talk(sandbox);
    seen.bytes = (await sandbox.exec('head', ['-c', '3000000', '/dev/zero'])).stdout.length;
    await sandbox.files.write('/tmp/ü.txt', 'grüße');
    seen.file = await sandbox.files.readText('/tmp/ü.txt');
    seen.names = (await sandbox.files.list('/tmp')).map(({ name }) => name);
    seen.terminal = await useTerminal(sandbox);
    seen.missing = await codeOf(() => sandbox.files.readText('/nowhere'), SvcError);
    seen.timeout = await codeOf(() => sandbox.exec('sleep', ['100'], { timeoutMs: 200 }), SvcError);
    const aborted = AbortSignal.abort();
    seen.aborted = await codeOf(() => sandbox.exec('true', [], { signal: aborted }), SvcError);
    seen.volume = await useVolume(Volume, client);
    seen.listed = [];
    for await (const { name } of Sandbox.list({ client })) seen.listed.push(name === sandbox.name);
  } finally {
    await sandbox[Symbol.asyncDispose]();
  }
  seen.removed = await codeOf(() => Sandbox.connect(sandbox.id, { client }), SvcError);
  return seen;
}

async function talk(sandbox) {
  const command = await sandbox.commands.start('cat');
  try {
    await command.write('one\ntwo\n');
    await command.closeStdin();
    const lines = [];
    for await (const line of command.stdout.lines()) lines.push(line);
    return lines;
  } finally {
    await command[Symbol.asyncDispose]();
  }
}

async function useTerminal(sandbox) {
  const terminal = await sandbox.pty.open({ cols: 80, rows: 24 });
  await terminal.resize({ cols: 120, rows: 40 });
  await terminal.write('stty size; exit\n');
  let screen = '';
  for await (const text of terminal.output.texts()) screen += text;
  return screen.includes('40 120');
}

async function useVolume(Volume, client) {
  const volume = await Volume.create({ name: `clients-${Math.random().toString(36).slice(2, 8)}`, client });
  try {
    await volume.files.write('a.bin', new Uint8Array([1, 2, 255]));
    return [...(await volume.files.read('a.bin'))];
  } finally {
    await volume.remove();
  }
}

async function codeOf(work, SvcError) {
  try {
    await work();
    return 'nothing was thrown';
  } catch (error) {
    return error instanceof SvcError ? error.code : String(error);
  }
}
