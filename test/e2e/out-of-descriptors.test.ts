import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../engine/start-engine.ts';
import { SupervisedServer } from './supervised-server.ts';

const SPARE_DESCRIPTORS = [0, 1, 2, 3, 4, 6];
const RETRYABLE = new Set(['unavailable', 'orchestrator_unreachable']);

let place: SupervisedServer;
before(async () => {
  place = await SupervisedServer.prepare();
  await place.start();
  await place.importBusybox();
});
after(() => place.clear());

describe('a server that may open no more files', { concurrency: false }, () => {
  test('answers with temporary errors, and recovers', async () => {
    await runNamed('first');
    const pid = await place.webPid();
    const allowed = openFilesLimit(pid);
    const codes = new Set<string>();
    for (const spare of SPARE_DESCRIPTORS) {
      limitOpenFiles(pid, openFiles(pid) + spare);
      const names = [1, 2, 3].map((number) => `spare-${spare}-${number}`);
      const outcomes = await Promise.all([
        ...names.map(codeOfStart),
        ...names.map(() => codeOfEcho('first')),
      ]);
      for (const code of outcomes) codes.add(code);
      limitOpenFiles(pid, allowed);
    }
    assert.equal(await place.webPid(), pid, 'the web-facing process was replaced');
    codes.delete('done');
    assert.notEqual(codes.size, 0, 'the limit was never felt');
    assert.deepEqual(
      [...codes].filter((code) => !RETRYABLE.has(code)),
      [],
    );
    await runNamed('last');
    assert.equal(await codeOfEcho('first'), 'done');
  });

  test('is started again by a supervisor that may open no more either, when that may', async () => {
    const supervisor = await place.serverPid();
    const web = await place.webPid();
    const allowed = openFilesLimit(supervisor);
    limitOpenFiles(supervisor, openFiles(supervisor) - 3);
    process.kill(web, 'SIGKILL');
    const log = () => readFileSync(`${place.folder}/server.log`, 'utf8');
    await waitUntil(() => log().includes('could not be started; it is tried again'));
    limitOpenFiles(supervisor, allowed);
    await place.untilHealthy();
    assert.equal(await place.serverPid(), supervisor);
    await runNamed('afterwards');
  });
});

async function runNamed(sandbox: string): Promise<void> {
  assert.equal(await codeOfStart(sandbox), 'done');
}

async function codeOfStart(sandbox: string): Promise<string> {
  return await codeOf('sandbox.start', { sandbox, config: { image: BUSYBOX } });
}

async function codeOfEcho(sandbox: string): Promise<string> {
  return await codeOf('sandbox.command.run', { sandbox, command: 'echo', args: ['here'] });
}

/** `done`, or the code of the error; a connection that the kernel closed is as good as one that was refused. */
async function codeOf(method: string, params: object): Promise<string> {
  try {
    const { error } = await place.call(method, params);
    if (error === undefined) return 'done';
    const { code } = error.data as { code: string };
    return code;
  } catch {
    return 'orchestrator_unreachable';
  }
}

function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function openFilesLimit(pid: number): string {
  const limits = readFileSync(`/proc/${pid}/limits`, 'utf8').split('\n');
  return limits.find((line) => line.startsWith('Max open files'))?.split(/\s+/)[3] ?? '';
}

/** The soft limit, which is the one that counts. As the user of the process: root of a container may not change that of others. */
function limitOpenFiles(pid: number, limit: number | string): void {
  const { uid, gid } = statSync(`/proc/${pid}`);
  const asUser = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--'];
  execFileSync('setpriv', [...asUser, 'prlimit', `--pid=${pid}`, `--nofile=${limit}:`]);
}
