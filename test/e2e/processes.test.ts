import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Process } from '@svc/contract/rest';
import { BUSYBOX } from '../engine/start-engine.ts';
import { OutputReader } from './process-output.ts';
import { TestServer } from './start-server.ts';

interface Reply {
  readonly status: number;
  readonly body: Body;
}

/** A process, a page of them, a sandbox or an error: tests say which they expect. */
type Body = Process & {
  readonly data: readonly Process[];
  readonly has_more: boolean;
  readonly error?: { readonly code: string; readonly details: Readonly<Record<string, unknown>> };
};

interface AuditEvent {
  readonly event_type: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const LINES = 4000;

/**
 * Prints numbered lines to stdout and now and then one to stderr, over about two seconds. In the middle it waits for a
 * word, so that the test decides what happens before the second half.
 */
const COUNTER = `i=1; while [ $i -le ${LINES} ]; do echo "line $i of stdout"; [ $((i % 100)) = 0 ] && { echo "mark $i" >&2; sleep 0.05; }; [ $i = ${LINES / 2} ] && read word; i=$((i+1)); done; exit 5`;
const STDOUT = Array.from({ length: LINES }, (_, i) => `line ${i + 1} of stdout\n`).join('');
const STDERR = Array.from({ length: LINES / 100 }, (_, i) => `mark ${(i + 1) * 100}\n`).join('');

for (const isolation of ['container', 'gvisor']) {
  describe(`durable processes on ${isolation}`, { concurrency: false }, () => {
    /** For rules of the server, which do not depend on the class. */
    const testOnce = isolation === 'container' ? test : () => undefined;
    let server: TestServer;
    let box: string;
    before(async () => {
      server = await TestServer.start({ engineArgs: ['--isolation', isolation, '--max-processes', '128'] });
      box = await run('box');
    });
    after(() => server.destroy());

    const rest = async (method: string, path: string, payload?: unknown): Promise<Reply> => {
      const isBytes = typeof payload === 'string';
      const response = await fetch(`${server.url}/v1/sandboxes${path}`, {
        method,
        headers: payload === undefined || isBytes ? {} : { 'content-type': 'application/json' },
        ...(payload === undefined ? {} : { body: isBytes ? payload : JSON.stringify(payload) }),
      });
      return { status: response.status, body: (await response.json()) as Body };
    };
    const run = async (name: string, more: object = {}): Promise<string> => {
      const image = { type: 'oci', reference: BUSYBOX };
      const path = '?start=true&wait_for=running&wait_timeout=60';
      const { status, body } = await rest('POST', path, { name, image, ...more });
      assert.deepEqual([status, body.status], [200, 'running'], JSON.stringify(body));
      return body.id;
    };
    const start = async (script: string, more: object = {}, sandbox = box) => {
      const request = { cmd: 'sh', args: ['-c', script], ...more };
      const { status, body } = await rest('POST', `/${sandbox}/processes`, request);
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    };
    const get = async (id: string, sandbox = box) => (await rest('GET', `/${sandbox}/processes/${id}`)).body;
    const ended = async (id: string, sandbox = box) => {
      await waitUntil(async () => (await get(id, sandbox)).status === 'exited', { what: `${id} has ended` });
      return await get(id, sandbox);
    };
    const outputUrl = (id: string, sandbox = box) =>
      `${server.url}/v1/sandboxes/${sandbox}/processes/${id}/output`;
    const residentBytes = async () => {
      const status = await readFile(`/proc/${await server.webPid()}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
    };
    /** Tells a counter that waits to go on, when those who come in between are back. */
    const continueProcess = async (id: string) => {
      const isHeard = async () =>
        (await rest('POST', `/${box}/processes/${id}/stdin`, 'on\n')).status === 200;
      await waitUntil(isHeard, { what: 'the process goes on' });
    };
    const refused = ({ status, body }: Reply, expected: number, code: string) =>
      assert.deepEqual([status, body.error?.code], [expected, code], JSON.stringify(body));

    test('a process is read after the client that started it is gone, by id and by name', async () => {
      const { id, ...started } = await start('echo out; echo err >&2; exit 3', { name: 'first' });
      assert.deepEqual(
        [started.name, started.status, started.exit, started.command],
        ['first', 'running', null, ['sh', '-c', 'echo out; echo err >&2; exit 3']],
      );
      const { exit, status, pid, ended_at: endedAt } = await ended(id);
      assert.deepEqual(exit, {
        code: 3,
        signal: null,
        shell_code: 3,
        reason: 'exit',
        killed_by: null,
        message: 'it exited with code 3',
      });
      assert.deepEqual([status, pid, (endedAt ?? '') >= started.started_at], ['exited', started.pid, true]);
      assert.equal((await get('first')).id, id);
      const reader = new OutputReader(outputUrl('first'));
      await reader.read();
      assert.deepEqual(
        [reader.text('stdout'), reader.text('stderr'), reader.end?.exit?.code],
        ['out\n', 'err\n', 3],
      );
    });

    testOnce(
      'kill -9 of the server in the middle: the client goes on where it was, and has every byte once',
      async () => {
        const { id } = await start(COUNTER, { stdin: true });
        const reader = new OutputReader(outputUrl(id));
        const reading = reader.read();
        await waitUntil(() => reader.text('stdout').length > 5000, { what: 'some output' });
        await server.kill();
        await reading;
        assert.ok(reader.text('stdout').length < STDOUT.length, 'it was cut off');
        await server.launch();
        await continueProcess(id);
        await reader.read(outputUrl(id));
        assert.equal(reader.text('stdout'), STDOUT);
        assert.equal(reader.text('stderr'), STDERR);
        assert.deepEqual([reader.dropped, reader.end?.exit?.code, reader.end?.exit?.reason], [[], 5, 'exit']);
      },
    );

    test('kill -9 of the engine in the middle: the stream continues without a reconnect of the client', async () => {
      const { id } = await start(COUNTER, { stdin: true });
      const reader = new OutputReader(outputUrl(id));
      const reading = reader.read();
      await waitUntil(() => reader.text('stdout').length > 5000, { what: 'some output' });
      await server.engine.kill();
      await server.engine.launch();
      await continueProcess(id);
      await reading;
      assert.equal(reader.text('stdout'), STDOUT);
      assert.equal(reader.text('stderr'), STDERR);
      assert.deepEqual([reader.dropped, reader.end?.exit?.code], [[], 5]);
    });

    test('a timeout ends what a process started in a session of its own, after a second fork, without descriptors', async () => {
      const leave = 'env -i setsid sh -c "exec 0<&- 1>&- 2>&-; (/bin/sleep 7654 &)"';
      const { id } = await start(`${leave}; (setsid sleep 7655 >/dev/null 2>&1 &); echo ready; sleep 1000`, {
        timeout_secs: 2,
      });
      assert.equal((await ended(id)).exit?.reason, 'timeout');
      const look = async () => {
        const script =
          'for f in /proc/[0-9]*/cmdline; do tr "\\0" " " < $f; echo; done | grep -c "^[^ ]*sleep 765[45] $"';
        const { id: looking } = await start(script);
        const reader = new OutputReader(outputUrl(looking));
        await reader.read();
        return reader.text('stdout').trim();
      };
      await waitUntil(async () => (await look()) === '0', { what: 'nothing of it is left' });
    });

    test('output that is not read in time is dropped, and marked', async () => {
      const { id } = await start('head -c 300000 /dev/zero; echo end', { output_buffer_bytes: 65536 });
      await ended(id);
      const reader = new OutputReader(outputUrl(id), 'stream=stdout');
      await reader.read();
      const [mark] = reader.dropped;
      assert.deepEqual([reader.dropped.length, mark?.from], [1, 0]);
      assert.equal((mark?.to ?? 0) + reader.text('stdout').length, 300_004);
      assert.ok(reader.text('stdout').endsWith('end\n'));
    });

    test('input goes in by several calls and ends; a terminal can be resized', async () => {
      const { id } = await start('wc -c', { stdin: true });
      const piece = 'x'.repeat(300_000);
      assert.deepEqual(await rest('POST', `/${box}/processes/${id}/stdin`, piece), {
        status: 200,
        body: { bytes: 300_000 },
      });
      assert.equal((await rest('POST', `/${box}/processes/${id}/stdin?close=true`, 'last')).status, 200);
      const reader = new OutputReader(outputUrl(id));
      await reader.read();
      assert.equal(reader.text('stdout').trim(), '300004');
      refused(await rest('POST', `/${box}/processes/${id}/stdin`, 'x'), 409, 'invalid_state_transition');

      const tty = await start('read x; stty size', { tty: true, stdin: true, rows: 20, cols: 30 });
      assert.equal(
        (await rest('POST', `/${box}/processes/${tty.id}/resize`, { rows: 44, cols: 55 })).status,
        200,
      );
      assert.equal((await rest('POST', `/${box}/processes/${tty.id}/stdin`, '\n')).status, 200);
      const screen = new OutputReader(outputUrl(tty.id));
      await screen.read();
      assert.match(screen.text('stdout'), /44 55/);
    });

    test('each exit has its reason, also without a connection', async () => {
      const slow = await start('sleep 100', { timeout_secs: 1 });
      const loud = await start('yes', { max_output_bytes: 10_000 });
      const shot = await start('kill -9 $$');
      const victim = await start('sleep 100');
      const signalled = await rest('POST', `/${box}/processes/${victim.id}/signal`, { signal: 'TERM' });
      assert.equal(signalled.status, 200);
      const ends = [];
      for (const { id } of [slow, loud, shot, victim]) {
        const { exit } = await ended(id);
        ends.push([exit?.reason, exit?.signal, exit?.shell_code]);
      }
      assert.deepEqual(ends, [
        ['timeout', 'SIGKILL', 137],
        ['output_limit', 'SIGKILL', 137],
        ['signal', 'SIGKILL', 137],
        ['killed_by', 'SIGTERM', 143],
      ]);
      assert.equal((await get(loud.id)).stdout_bytes, 10_000);
      assert.ok(((await get(victim.id)).exit?.killed_by?.length ?? 0) > 0);
    });

    test('50 processes at once are distinguished', async () => {
      const all = await Promise.all(
        Array.from({ length: 50 }, (_, i) => start(`echo i am ${i}; exit ${i}`, { name: `job-${i}` })),
      );
      const readers = all.map(({ id }) => new OutputReader(outputUrl(id)));
      await Promise.all(readers.map((reader) => reader.read()));
      assert.deepEqual(
        readers.map((reader) => [reader.text('stdout'), reader.end?.exit?.code]),
        all.map((_, i) => [`i am ${i}\n`, i]),
      );
      const page = (await rest('GET', `/${box}/processes?limit=20&status=exited`)).body;
      assert.deepEqual([page.data.length, page.has_more], [20, true]);
    });

    testOnce('impossible calls are refused with the remedy', async () => {
      const processes = `/${box}/processes`;
      refused(await rest('POST', `/${UNKNOWN_ID}/processes`, { cmd: 'true' }), 404, 'sandbox_not_found');
      refused(await rest('GET', `${processes}/${UNKNOWN_ID}`), 404, 'process_not_found');
      refused(await rest('GET', `${processes}/missing/output`), 404, 'process_not_found');
      refused(await rest('POST', processes, { cmd: '' }), 400, 'invalid_request');
      refused(await rest('POST', processes, { cmd: 'true', name: '1x' }), 400, 'invalid_request');
      refused(await rest('POST', processes, { cmd: 'true', env: { 'A=B': 'x' } }), 400, 'invalid_request');
      const huge = Array.from({ length: 50 }, () => 'x'.repeat(100_000));
      refused(await rest('POST', processes, { cmd: 'true', args: huge }), 413, 'payload_too_large');
      const missing = await rest('POST', processes, { cmd: 'no-such-program' });
      refused(missing, 422, 'exec_failed');
      assert.equal(missing.body.error?.details['reason'], 'not_found');
      refused(await rest('POST', processes, { cmd: 'true', cwd: '/no/such' }), 422, 'exec_failed');
      const { id } = await start('sleep 100', { name: 'only' });
      refused(await rest('POST', processes, { cmd: 'true', name: 'only' }), 409, 'name_already_exists');
      refused(
        await rest('POST', `${processes}/${id}/signal`, { signal: 'SIGNOTHING' }),
        400,
        'invalid_request',
      );
      refused(await rest('POST', `${processes}/${id}/stdin`, 'x'), 409, 'invalid_state_transition');
      refused(
        await rest('POST', `${processes}/${id}/resize`, { rows: 1, cols: 1 }),
        409,
        'invalid_state_transition',
      );
      refused(await rest('GET', `${processes}/${id}/output?stream=stdout&offset=7`), 400, 'invalid_request');
      refused(await rest('GET', `${processes}/${id}/output?offset=7`), 400, 'invalid_request');
      assert.equal((await rest('DELETE', `${processes}/${id}`)).status, 200);
      refused(await rest('GET', `${processes}/${id}`), 404, 'process_not_found');
      await start('true', { name: 'only' });
    });

    testOnce('operations on processes are in the audit log, with their caller', async () => {
      const { id } = await start('sleep 100', { name: 'audited', env: { TOKEN: 'secret-word' } });
      await rest('POST', `/${box}/processes/audited/signal`, { signal: 10 });
      await rest('DELETE', `/${box}/processes/audited`);
      const response = await fetch(`${server.url}/v1/events?limit=100`);
      const text = await response.text();
      assert.ok(!text.includes('secret-word'), 'the environment is not in the audit trail');
      const { data } = JSON.parse(text) as { data: readonly AuditEvent[] };
      const mine = data.filter((event) => event.payload['process_id'] === id);
      assert.deepEqual(mine.map((event) => event.event_type).toSorted(), [
        'exec_started',
        'process_removed',
        'process_signalled',
      ]);
      const started = mine.find((event) => event.event_type === 'exec_started');
      assert.deepEqual(
        [started?.payload['command'], started?.payload['name'], started?.payload['sandbox_id']],
        ['sh -c sleep 100', 'audited', box],
      );
    });

    testOnce('a start that is repeated with its idempotency key starts one process', async () => {
      const once = async () => {
        const response = await fetch(`${server.url}/v1/sandboxes/${box}/processes`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': `once-${isolation}` },
          body: JSON.stringify({ cmd: 'sleep', args: ['1'], name: 'once' }),
        });
        return (await response.json()) as { id: string };
      };
      const [first, second] = [await once(), await once()];
      assert.ok(first.id !== undefined && first.id === second.id, JSON.stringify([first, second]));
    });

    test('a client that does not read holds up its process alone, and costs no memory', async () => {
      const size = 96 * 1024 * 1024;
      const { id } = await start(`read go; head -c ${size} /dev/zero`, { stdin: true });
      const response = await fetch(`${outputUrl(id)}?follow=true&stream=stdout`);
      const body = response.body?.getReader();
      await body?.read();
      const before = await residentBytes();
      await rest('POST', `/${box}/processes/${id}/stdin`, '\n');
      let produced = -1;
      await waitUntil(async () => {
        const now = (await get(id)).stdout_bytes;
        const isStill = now > 0 && now === produced;
        produced = now;
        return isStill;
      });
      assert.ok(produced < size, `it waits at ${produced}`);
      const other = new OutputReader(outputUrl((await start('echo other')).id));
      await other.read();
      assert.equal(other.text('stdout'), 'other\n');
      assert.ok((await residentBytes()) - before < 48 * 1024 * 1024);
      let received = 0;
      for (let next = await body?.read(); next?.done === false; next = await body?.read())
        received += next.value.length;
      assert.ok(received > (size * 4) / 3, 'all of it came, in base64');
      assert.equal((await get(id)).exit?.reason, 'exit');
    });

    test('a process that used up the memory of its sandbox says so', async () => {
      const small = await run('small', { resources: { memory_mib: 64, vcpus: 1 } });
      const script = 'read go; exec dd if=/dev/zero of=/dev/null bs=300M count=1';
      const { id } = await start(script, { stdin: true }, small);
      // In gVisor everything ends at once, so that even this may not be answered.
      await rest('POST', `/${small}/processes/${id}/stdin`, '\n');
      const { exit } = await ended(id, small);
      assert.equal(exit?.reason, 'oom', JSON.stringify(exit));
    });

    test('a process that failed because the disk was full says so', async () => {
      const tiny = await run('tiny', { resources: { disk_size_mib: 64 } });
      const { id } = await start('dd if=/dev/zero of=/big bs=1M', {}, tiny);
      const { exit } = await ended(id, tiny);
      assert.deepEqual([exit?.reason, exit?.code], ['disk_full', 1], JSON.stringify(exit));
      const other = await start('rm /big; exit 1', {}, tiny);
      assert.equal((await ended(other.id, tiny)).exit?.reason, 'exit');
    });

    // gVisor counts the processes of the sandbox itself and does not report a refused one.
    if (isolation === 'container') {
      test('a process that failed because there were too many processes says so', async () => {
        const crowd = await run('crowd');
        const script = 'i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done';
        const { id } = await start(script, {}, crowd);
        const { exit } = await ended(id, crowd);
        assert.deepEqual([exit?.reason, exit?.code], ['pids', 2], JSON.stringify(exit));
        const other = await start('exit 1', {}, crowd);
        assert.equal((await ended(other.id, crowd)).exit?.reason, 'exit');
      });
    }

    test('a limit of CPU time is kept, or refused with the reason', async () => {
      const limited = { cmd: 'true', rlimits: [{ resource: 'cpu', soft: 5, hard: 5 }] };
      const { status, body } = await rest('POST', `/${box}/processes`, limited);
      if (isolation === 'container') return assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body.error?.code, 'exec_failed');
      assert.match(JSON.stringify(body.error), /cpu is not kept by the isolation of this sandbox/);
    });

    test('a process keeps its record and its reason when its sandbox has ended', async () => {
      const stopped = await run('stopped');
      const running = await start('echo hi; sleep 1000', {}, stopped);
      // Long enough for a process to be started in it on a machine that stands still for a while.
      const short = await run('short', { lifecycle: { max_duration_secs: 8 } });
      const long = await start('sleep 1000', {}, short);
      const reader = new OutputReader(outputUrl(running.id, stopped));
      const reading = reader.read();
      await waitUntil(() => reader.text('stdout') === 'hi\n', { what: 'its output' });
      assert.equal((await rest('POST', `/${stopped}/stop`)).status, 200);
      await reading;
      assert.equal(reader.end?.exit?.reason, 'killed_by', JSON.stringify(reader.end));
      refused(await rest('POST', `/${stopped}/processes`, { cmd: 'true' }), 409, 'sandbox_not_running');
      const late = new OutputReader(outputUrl(running.id, stopped));
      await late.read();
      assert.deepEqual(late.dropped, [{ stream: 'stdout', from: 0, to: 3 }]);
      const toTheEnd = new OutputReader(outputUrl(long.id, short));
      await toTheEnd.read();
      assert.equal(toTheEnd.end?.exit?.reason, 'max_duration', JSON.stringify(toTheEnd.end));
      assert.equal((await ended(long.id, short)).exit?.reason, 'max_duration');
    });
  });
}
