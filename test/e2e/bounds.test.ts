import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { CLASSES } from '../engine/sandbox-fixture.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const MIB = 2 ** 20;
const RUN = 'start=true&wait_for=running';

interface Reply {
  readonly status: number;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- Tests name the fields that they expect.
  readonly body: any;
}

for (const isolation of CLASSES) {
  describe(`bounds of a spec with class ${isolation}`, () => {
    let server: TestServer;
    before(async () => {
      server = await TestServer.start({ engineArgs: ['--isolation', isolation] });
    });
    after(() => server.destroy());

    /** `body` as text, because numbers beyond 2^53 cannot be said otherwise. */
    const post = async (query: string, body: string): Promise<Reply> => {
      const answer = await fetch(`${server.url}/v1/sandboxes?${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      const text = await answer.text();
      return { status: answer.status, text, body: JSON.parse(text) };
    };
    const bodyOf = (name: string, more: string) =>
      `{"name":"${name}","image":{"type":"oci","reference":"${BUSYBOX}"},${more}}`;
    const inside = async (sandbox: string, script: string): Promise<string> => {
      const params = { sandbox, command: 'sh', args: ['-c', script] };
      const { result, error } = await server.call('sandbox.command.run', params);
      assert.equal(error, undefined, JSON.stringify(error));
      return (result as { readonly output: string }).output;
    };

    test('a size beyond the host is refused at create, over REST and JSON-RPC, with the maximum', async () => {
      const cpus = availableParallelism();
      for (const [field, more] of [
        ['resources.vcpus', '"resources":{"vcpus":255}'],
        ['resources.memory_mib', '"resources":{"memory_mib":4194304}'],
        ['resources.disk_size_mib', '"resources":{"disk_size_mib":16777216}'],
        ['init', '"init":{"cmd":"auto"}'],
        ['rlimits[0].hard', '"rlimits":[{"resource":"rtprio","soft":0,"hard":1}]'],
      ] as const) {
        for (const query of ['', 'start=true']) {
          const { status, body } = await post(query, bodyOf('beyond', more));
          assert.deepEqual(
            [status, body.error?.code, body.error?.details?.field],
            [400, 'invalid_sandbox_config', field],
          );
        }
      }
      const config = { image: BUSYBOX, cpus: 255 };
      const { error } = await server.call('sandbox.start', { sandbox: 'beyond', config });
      assert.equal(error?.code, -32_602);
      assert.match(error.message, new RegExp(`config\\.cpus must be at most ${cpus}:`));
    });

    test('a limit of u64 max is none, inside and in the answer', async () => {
      const limits = [
        '{"resource":"core","soft":18446744073709551615,"hard":18446744073709551615}',
        '{"resource":"fsize","soft":1048576,"hard":18446744073709551615}',
      ];
      const { body, text } = await post(RUN, bodyOf('limits', `"rlimits":[${limits.join(',')}]`));
      assert.equal(body.status, 'running', text);
      assert.match(text, /"resource":"Core","soft":18446744073709551615,"hard":18446744073709551615/);
      assert.match(text, /"resource":"Fsize","soft":1048576,"hard":18446744073709551615/);
      assert.equal(
        await inside('limits', 'ulimit -c; ulimit -Hc; ulimit -Hf'),
        'unlimited\nunlimited\nunlimited\n',
      );
      // In a spec it is in 512-byte blocks, or in 1024; either way it is not unlimited.
      assert.match(await inside('limits', 'ulimit -f'), /^(1024|2048)\n$/);
    });

    test('priorities cannot be raised', async () => {
      await post(RUN, bodyOf('plain', '"env":[]'));
      const limits = await inside('plain', 'cat /proc/self/limits');
      const zero = /\s0\s+0\b/;
      // gVisor lists only some limits, and has no real-time scheduling.
      if (isolation === 'container') {
        assert.match(/^Max nice priority.*$/m.exec(limits)?.[0] ?? '', zero);
        assert.match(/^Max realtime priority.*$/m.exec(limits)?.[0] ?? '', zero);
      }
      const script = 'chrt -f 1 true 2>/dev/null && echo raised; nice -n -5 sh -c "nice" 2>/dev/null; true';
      assert.doesNotMatch(await inside('plain', script), /raised|^-/m);
    });

    test('a patch of 16 MiB is written, and a body beyond the limit is refused with it', async () => {
      const content = 'x'.repeat(16 * MIB);
      const patches = (text: string) => `"patches":[{"type":"text","path":"/big","content":"${text}"}]`;
      const { body, text } = await post(RUN, bodyOf('big', patches(content)));
      assert.equal(body.status, 'running', text.slice(0, 500));
      assert.equal(await inside('big', 'wc -c < /big'), `${16 * MIB}\n`);
      const bytes = Array.from({ length: 4 * MIB }, () => 255).join(',');
      const file = `"patches":[{"type":"file","path":"/bytes","content":[${bytes}]}]`;
      assert.equal((await post(RUN, bodyOf('bytes', file))).body.status, 'running');
      assert.equal(await inside('bytes', 'wc -c < /bytes'), `${4 * MIB}\n`);
      const tooLong = await post(RUN, bodyOf('longer', patches(`${content}x`)));
      assert.equal(tooLong.body.error.details.field, 'patches[0].content');
      const tooLarge = await post(RUN, bodyOf('larger', patches(content + content)));
      assert.deepEqual([tooLarge.status, tooLarge.body.error.code], [413, 'payload_too_large']);
      // It starts again without them: they are on its disk.
      await server.call('sandbox.stop', { sandbox: 'big' });
      assert.equal((await server.call('sandbox.start', { sandbox: 'big' })).error, undefined);
      assert.equal(await inside('big', 'wc -c < /big'), `${16 * MIB}\n`);
    });
  });
}
