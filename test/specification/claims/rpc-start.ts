import assert from 'node:assert/strict';
import { freePort } from '../../../packages/server/src/testing/free-port.ts';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { claim, claimOnce, type Claim } from '../claim.ts';
import { call, CONFIG, failure, METHODS, prints, startedBox } from './rpc-call.ts';

export const startClaims: readonly Claim[] = [
  claimOnce(
    'sandbox.start.params.sandbox',
    'The name of the sandbox: 1–63 letters, digits, hyphens or underscores',
    'names that break a rule are -32602 with the words of the rule, in every method',
    async (ground) => {
      const cases = [
        ['', 'Sandbox name cannot be empty'],
        ['a'.repeat(64), 'Sandbox name cannot exceed 63 characters'],
        ['a b', 'Sandbox name can only contain alphanumeric characters, hyphens, or underscores'],
        ['-a', 'Sandbox name must start with an alphanumeric character'],
      ] as const;
      for (const method of METHODS) {
        for (const [sandbox, message] of cases) {
          const error = await failure(ground, method, { sandbox });
          assert.deepEqual([error.code, error.message], [-32_602, message]);
        }
      }
    },
    { covers: METHODS.slice(1).map((method) => `${method}.params.sandbox`) },
  ),
  claimOnce(
    'sandbox.start.params.namespace',
    'The namespace of the sandbox, `default` when it is left out; it cannot be empty',
    'names that break a rule are -32602 with the words of the rule, in every method',
    async (ground) => {
      const cases = [
        ['', 'Namespace cannot be empty'],
        ['a'.repeat(64), 'Namespace cannot exceed 63 characters'],
        ['a b', 'Namespace can only contain alphanumeric characters, hyphens, or underscores'],
        ['-a', 'Namespace must start with an alphanumeric character'],
      ] as const;
      for (const method of [...METHODS, 'sandbox.metrics.get']) {
        for (const [namespace, message] of cases) {
          const error = await failure(ground, method, { sandbox: 'a', namespace });
          assert.deepEqual([error.code, error.message, error.data.field], [-32_602, message, 'namespace']);
        }
      }
      const unnamed = await failure(ground, 'sandbox.stop', { sandbox: 'missing', namespace: null });
      assert.equal(unnamed.message, "Sandbox 'missing' not found in configuration");
    },
    { covers: METHODS.slice(1).map((method) => `${method}.params.namespace`), default: '`default`' },
  ),
  claim(
    'sandbox.start.params.config.image',
    'The image; with it what is stored is replaced',
    'its files are there; a running sandbox with another config is not replaced',
    async (ground) => {
      await prints(ground, 'test -x /bin/busybox && echo there', 'there\n');
      const error = await failure(ground, 'sandbox.start', {
        sandbox: await startedBox(ground),
        config: { image: BUSYBOX },
      });
      assert.deepEqual([error.code, error.data.code], [-32_603, 'invalid_state_transition']);
    },
  ),
  claim(
    'sandbox.start.params.config',
    'Null, or left out: the sandbox starts again from what is stored',
    'a sandbox that is unknown is not found; one that was stopped has its environment and its disk',
    async (ground) => {
      const error = await failure(ground, 'sandbox.start', { sandbox: 'missing', config: null });
      assert.equal(error.message, "Sandbox 'missing' not found in configuration");
      const sandbox = ground.fresh('again');
      await call(ground, 'sandbox.start', { sandbox, config: { image: BUSYBOX, envs: ['A=b'] } });
      const sh = (script: string) =>
        call(ground, 'sandbox.command.run', { sandbox, command: 'sh', args: ['-c', script] });
      await sh('echo kept > /root/file; sync');
      await call(ground, 'sandbox.stop', { sandbox });
      await call(ground, 'sandbox.start', { sandbox });
      assert.equal((await sh('echo $A; cat /root/file')).output, 'b\nkept\n');
      await call(ground, 'sandbox.stop', { sandbox });
    },
  ),
  claim(
    'sandbox.start.params.config.memory',
    'Memory in MiB',
    '`MemTotal` inside',
    (ground) =>
      prints(ground, `sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo`, `${96 * 1024}\n`),
    { default: '512' },
  ),
  claim(
    'sandbox.start.params.config.cpus',
    'CPUs',
    '`nproc` inside',
    (ground) => prints(ground, 'nproc', '1\n'),
    { default: '1' },
  ),
  claim(
    'sandbox.start.params.config.envs',
    'Variables, each KEY=VALUE, split at the first equals sign',
    'the variable inside; an entry without the sign is refused by field',
    async (ground) => {
      await prints(ground, 'echo "$GREETING"', 'hello = world\n');
      const error = await failure(ground, 'sandbox.start', {
        sandbox: 'bad',
        config: { image: BUSYBOX, envs: ['X'] },
      });
      assert.deepEqual([error.code, error.data.field], [-32_602, 'config.envs[0]']);
    },
  ),
  claim(
    'sandbox.start.params.config.workdir',
    'Where processes start',
    '`pwd` inside; a relative path is refused by field',
    async (ground) => {
      await prints(ground, 'pwd', '/tmp\n');
      const error = await failure(ground, 'sandbox.start', {
        sandbox: 'bad',
        config: { image: BUSYBOX, workdir: 'x' },
      });
      assert.deepEqual([error.code, error.data.field], [-32_602, 'config.workdir']);
    },
  ),
  claim('sandbox.start.params.config.shell', 'The shell of the sandbox', '`SHELL` inside', (ground) =>
    prints(ground, 'echo $SHELL', '/bin/ash\n'),
  ),
  claim(
    'sandbox.start.params.config.scripts',
    'Programs by name, on the path',
    'one is run by its name',
    (ground) => prints(ground, 'greet', 'says hello = world\n'),
  ),
  claim(
    'sandbox.start.params.config.ports',
    'TCP ports of loopback, each host:guest or one for both',
    'a connection on the host is served inside; what is no port is refused by field',
    async (ground) => {
      const [port, sandbox] = [await freePort(), ground.fresh('served')];
      await call(ground, 'sandbox.start', { sandbox, config: { image: BUSYBOX, ports: [`${port}:8080`] } });
      const serve = 'mkdir /www; echo page > /www/index.html; httpd -p 8080 -h /www';
      await call(ground, 'sandbox.command.run', { sandbox, command: 'sh', args: ['-c', serve] });
      const get = async () => (await fetch(`http://127.0.0.1:${port}/`)).text().catch(() => '');
      await ground.wait(async () => (await get().catch(() => '')) === 'page\n', 'the page');
      await call(ground, 'sandbox.stop', { sandbox });
      const error = await failure(ground, 'sandbox.start', {
        sandbox: 'bad',
        config: { image: BUSYBOX, ports: ['x'] },
      });
      assert.deepEqual([error.code, error.data.field], [-32_602, 'config.ports[0]']);
    },
  ),
  claim(
    'sandbox.start.params.config.volumes',
    'Folders of the host that the operator allows, each host:guest or host:guest:ro',
    'what is written inside is on the host, and not with `ro`; other folders are refused',
    async (ground) => {
      const [sandbox, folder] = [ground.fresh('bound'), `${ground.folder}/shared`];
      const volumes = [`${folder}:/w`, `${folder}:/r:ro`];
      await call(ground, 'sandbox.start', { sandbox, config: { image: BUSYBOX, volumes } });
      const script = 'echo inside > /w/file; cat /r/file; touch /r/x';
      const { output, error } = await call(ground, 'sandbox.command.run', {
        sandbox,
        command: 'sh',
        args: ['-c', script],
      });
      assert.equal(output, 'inside\n');
      assert.match(error, /Read-only/);
      await call(ground, 'sandbox.stop', { sandbox });
      const refused = await failure(ground, 'sandbox.start', {
        sandbox: 'bad',
        config: { image: BUSYBOX, volumes: ['/etc:/x'] },
      });
      assert.match(
        refused.message,
        /config\.volumes.*not inside a folder that this host lets sandboxes mount/,
      );
    },
  ),
  claim(
    'sandbox.start.result',
    'A sentence that says that it was started',
    'its words; once more with the same config it is the same and changes nothing',
    async (ground) => {
      const sandbox = await startedBox(ground);
      assert.equal(
        await call(ground, 'sandbox.start', { sandbox, config: CONFIG }),
        `Sandbox ${sandbox} started successfully`,
      );
    },
  ),
  claim(
    'sandbox.stop.result',
    'A sentence that says that it was stopped',
    'its words, also of one that is stopped already; the engine says that it does not run',
    async (ground) => {
      const sandbox = ground.fresh('stopped');
      await call(ground, 'sandbox.start', { sandbox, config: { image: BUSYBOX } });
      for (let times = 0; times < 2; times++)
        assert.equal(
          await call(ground, 'sandbox.stop', { sandbox }),
          `Sandbox ${sandbox} stopped successfully`,
        );
      const [entry] = (await call(ground, 'sandbox.metrics.get', { sandbox })).sandboxes;
      assert.equal(entry.running, false);
    },
  ),
];
