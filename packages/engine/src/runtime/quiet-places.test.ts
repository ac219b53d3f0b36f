import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CpuPlaces } from './cpu-places.ts';
import { QuietPlaces } from './quiet-places.ts';

const LOOK_MS = 100;

/** Sandboxes on CPUs whose clock the test decides about. */
class FakeHost {
  readonly cpusOf = new Map<string, string>();
  readonly places: CpuPlaces;
  readonly quiet: QuietPlaces;
  readonly #used = new Map<string, number>();
  #at = 0;
  writes = 0;
  reads = 0;

  constructor(cpus: readonly number[], refuse: () => void = () => {}) {
    this.places = new CpuPlaces(cpus.length);
    const setCpus = (handle: string, list: string) => {
      refuse();
      this.writes += 1;
      this.cpusOf.set(handle, list);
    };
    const cpuMicroseconds = (handle: string) => {
      this.reads += 1;
      return this.#used.get(handle) ?? 0;
    };
    this.quiet = new QuietPlaces({ setCpus, cpuMicroseconds }, cpus, this.places);
  }

  settle(vcpus: number, ...handles: readonly string[]): void {
    for (const handle of handles) this.quiet.settle(handle, vcpus);
  }

  /** So many looks; in the time before each of them, a sandbox uses so much of a CPU. */
  pass(looks: number, used: Readonly<Record<string, number>>): void {
    for (let look = 0; look < looks; look++) {
      this.#at += LOOK_MS;
      for (const [handle, part] of Object.entries(used))
        for (const each of [handle, '.'])
          this.#used.set(each, (this.#used.get(each) ?? 0) + part * LOOK_MS * 1000);
      this.quiet.look(this.#at);
    }
  }
}

test('those that use little stay on as many CPUs as they have vCPUs, each where the fewest others are', () => {
  const host = new FakeHost([1, 2, 3, 4]);
  host.settle(1, 'a', 'b', 'c', 'd', 'e');
  assert.deepEqual([...host.cpusOf.values()], ['1', '2', '3', '4', '1']);
  host.pass(50, { a: 0.01, b: 0.1, d: 0.58 });
  assert.equal(host.writes, 5);
  host.settle(3, 'wide');
  assert.equal(host.cpusOf.get('wide'), '2,3,4');
});

test('one that computes runs anywhere soon, and until it is quiet again', () => {
  const host = new FakeHost([0, 1]);
  host.settle(1, 'one', 'other');
  host.pass(1, { one: 1 });
  assert.equal(host.cpusOf.get('one'), '0', 'how long it has computed is not known yet');
  host.pass(1, { one: 1 });
  assert.equal(host.cpusOf.get('one'), '0,1');
  host.pass(27, { one: 0.3 });
  host.pass(8, { one: 0 });
  assert.equal(host.writes, 3);
  host.pass(20, { one: 0.1 });
  assert.equal(host.cpusOf.get('one'), '0');
  assert.equal(host.cpusOf.get('other'), '1');
});

test('a moment of work is no sign of more, however often it comes', () => {
  const host = new FakeHost([0, 1]);
  host.settle(1, 'one');
  for (let count = 0; count < 10; count++) {
    host.pass(1, { one: 1 });
    host.pass(5, {});
  }
  assert.equal(host.writes, 1);
});

test('what counts is a part of the vCPUs', () => {
  const host = new FakeHost([0, 1, 2, 3]);
  host.settle(2, 'two');
  host.pass(10, { two: 1.1 });
  assert.equal(host.cpusOf.get('two'), '0,1');
  host.pass(2, { two: 1.3 });
  assert.equal(host.cpusOf.get('two'), '0,1,2,3');
});

test('while all together use less than one that computes would, nobody is looked at for it', () => {
  const host = new FakeHost([0, 1]);
  host.settle(1, 'one', 'two');
  host.pass(20, { one: 0.25, two: 0.3 });
  assert.equal(host.reads, 20);
  host.pass(1, { one: 0.4, two: 0.4 });
  assert.equal(host.reads, 23);
});

test('of very many some are judged at a time, and one that computes is found', () => {
  const host = new FakeHost([0, 1]);
  host.settle(1, ...Array.from({ length: 500 }, (_, index) => `idle${index}`), 'one');
  host.pass(1, { one: 1 });
  assert.equal(host.reads, 65);
  host.pass(16, { one: 1 });
  assert.equal(host.cpusOf.get('one'), '0,1');
  assert.equal(host.writes, 502, 'nobody else');
  for (let index = 0; index < 500; index++) host.quiet.leave(`idle${index}`);
  host.pass(10, { one: 1 });
});

test('one that runs anywhere or has ended takes no place from others, and one of the same name begins anew', () => {
  const host = new FakeHost([0, 1]);
  host.settle(1, 'one', 'two');
  host.pass(2, { one: 1 });
  assert.equal(host.places.take('container', 1), 0);
  host.quiet.leave('two');
  assert.equal(host.places.take('other', 1), 1);
  host.quiet.leave('one');
  host.pass(20, { one: 0 });
  assert.equal(host.cpusOf.get('one'), '0,1', 'it is gone');
  host.settle(1, 'one');
  assert.equal(host.cpusOf.get('one')?.length, 1);
});

test('one that has all CPUs, or a host that gives none, is left alone', () => {
  for (const cpus of [[], [0], [0, 1]]) {
    const host = new FakeHost(cpus);
    host.settle(2, 'one');
    host.pass(3, { one: 2 });
    assert.equal(host.writes, 0);
  }
});

test('when nobody looks any more, all may compute', () => {
  const host = new FakeHost([0, 1]);
  host.settle(1, 'one', 'two');
  host.pass(2, { two: 1 });
  host.quiet.release();
  assert.deepEqual([...host.cpusOf.values()], ['0,1', '0,1']);
  assert.equal(host.writes, 4, 'one of them did already');
});

test('CPUs that are not ours to give cost nobody a start; what is not foreseen is said', () => {
  const refuse = (code: string) => () => {
    throw Object.assign(new Error(code), { code });
  };
  for (const code of ['EACCES', 'EBUSY', 'EINVAL', 'ENOSPC', 'EPERM', 'EROFS'])
    new FakeHost([0, 1], refuse(code)).settle(1, 'one');
  assert.throws(() => new FakeHost([0, 1], refuse('EIO')).settle(1, 'one'), /EIO/);
});
