import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { test, type TestContext } from 'node:test';
import { Cgroups } from './cgroups.ts';
import { FairWeights } from './fair-weights.ts';

/** A folder that stands for the cgroups of a host with two processors, whose time the test decides about. */
class FakeHost {
  readonly #folder: string;
  readonly #version: 1 | 2;
  readonly #used = new Map<string, number>();
  #times = { idle: 0, all: 0 };
  weights: FairWeights;

  constructor(t: TestContext, version: 1 | 2) {
    this.#folder = mkdtempSync(`${tmpdir()}/svc-fair-weights-`);
    this.#version = version;
    mkdirSync(`${this.#folder}/svc`);
    this.#write('.', version === 1 ? 'cpu.shares' : 'cpu.weight', '1024');
    t.after(() => rmSync(this.#folder, { recursive: true }));
    this.weights = this.engine();
  }

  /** Another one, which knows nothing of what the one before has done. */
  engine(): FairWeights {
    const controllers = this.#version === 1 ? ['cpu', 'cpuacct'] : ['cpu'];
    const tree = { mountpoint: this.#folder, version: this.#version, controllers };
    this.weights = new FairWeights(
      new Cgroups({ version: this.#version, trees: [tree] }),
      1024,
      () => this.#times,
    );
    return this.weights;
  }

  add(name: string, vcpus = 1): void {
    mkdirSync(`${this.#folder}/svc/${name}`, { recursive: true });
    const files =
      this.#version === 1
        ? {
            'cpu.shares': vcpus * 4096,
            'cpu.cfs_quota_us': vcpus * 100_000,
            'cpu.cfs_period_us': 100_000,
            'cpuacct.usage': 0,
          }
        : { 'cpu.weight': vcpus * 157, 'cpu.max': `${vcpus * 100_000} 100000`, 'cpu.stat': 'usage_usec 0\n' };
    for (const [file, value] of Object.entries(files)) this.#write(name, file, String(value));
  }

  remove(name: string): void {
    rmSync(`${this.#folder}/svc/${name}`, { recursive: true });
  }

  /** Half a second in which each uses so many milliseconds of the two processors, and `idle` nobody; then the engine looks. */
  pass(used: Readonly<Record<string, number>>, idle = 0): void {
    this.use(used, idle);
    this.weights.look();
  }

  /** The same, and no engine looks. */
  use(used: Readonly<Record<string, number>>, idle = 0): void {
    this.#times = { idle: this.#times.idle + idle * 1000, all: this.#times.all + 1_000_000 };
    const all = Object.values(used).reduce((sum, milliseconds) => sum + milliseconds, 0);
    for (const [name, milliseconds] of [...Object.entries(used), ['.', all] as const])
      this.#use(name, milliseconds);
  }

  #use(name: string, milliseconds: number): void {
    const all = (this.#used.get(name) ?? 0) + milliseconds;
    this.#used.set(name, all);
    if (this.#version === 1) this.#write(name, 'cpuacct.usage', String(all * 1e6));
    else this.#write(name, 'cpu.stat', `usage_usec ${all * 1000}\nuser_usec 1\n`);
  }

  weightOf(name: string): number {
    return Number(readFileSync(`${this.#folder}/svc/${name}/${this.#weightFile}`, 'latin1'));
  }

  weigh(name: string, weight: number): void {
    this.#write(name, this.#weightFile, String(weight));
  }

  get #weightFile(): string {
    return this.#version === 1 ? 'cpu.shares' : 'cpu.weight';
  }

  #write(name: string, file: string, text: string): void {
    writeFileSync(`${this.#folder}/svc/${name}/${file}`, text);
  }
}

for (const [version, usual, behind] of [
  [1, 4096, 256],
  [2, 157, 10],
] as const) {
  const hostOf = (t: TestContext, ...names: readonly string[]) => {
    const host = new FakeHost(t, version);
    for (const name of names) host.add(name);
    return host;
  };

  test(`version ${version}: who computes all the time stands behind who rests, by its vCPUs`, (t) => {
    const host = hostOf(t, 'one', 'quiet');
    host.add('two', 2);
    for (let look = 0; look < 3; look++) host.pass({ one: 330, two: 660, quiet: 5 });
    assert.deepEqual(
      ['one', 'two', 'quiet'].map((name) => host.weightOf(name)),
      [behind, 2 * behind, usual],
    );
  });

  test(`version ${version}: while processors are idle, or again are, all weigh what they usually do`, (t) => {
    const host = hostOf(t, 'one', 'two');
    for (let look = 0; look < 3; look++) host.pass({ one: 200, two: 200 }, 600);
    assert.deepEqual([host.weightOf('one'), host.weightOf('two')], [usual, usual]);
    for (let look = 0; look < 2; look++) host.pass({ one: 500, two: 500 });
    assert.deepEqual([host.weightOf('one'), host.weightOf('two')], [behind, behind]);
    host.pass({ one: 100 }, 600);
    assert.deepEqual([host.weightOf('one'), host.weightOf('two')], [usual, usual]);
  });

  test(`version ${version}: who uses less than half of its part goes first, and nobody else`, (t) => {
    const host = hostOf(t, 'most', 'some', 'little');
    // A part is a third of a second.
    for (let look = 0; look < 2; look++) host.pass({ most: 700, some: 200, little: 100 });
    assert.deepEqual(
      ['most', 'some', 'little'].map((name) => host.weightOf(name)),
      [behind, behind, usual],
    );
    host.pass({ most: 750, some: 100, little: 150 });
    assert.equal(host.weightOf('some'), behind, 'not back and forth at the bound');
    for (let look = 0; look < 12; look++) host.pass({ most: 850, some: 50, little: 100 });
    assert.equal(host.weightOf('some'), usual);
  });

  test(`version ${version}: a short piece of work puts nobody behind`, (t) => {
    const host = hostOf(t, 'one', 'two', 'quiet');
    for (let look = 0; look < 12; look++) host.pass({ one: 500, two: 500, quiet: 0 });
    host.pass({ one: 300, two: 300, quiet: 400 });
    assert.equal(host.weightOf('quiet'), usual);
    for (let look = 0; look < 4; look++) host.pass({ one: 300, two: 300, quiet: 400 });
    assert.equal(host.weightOf('quiet'), behind);
  });

  test(`version ${version}: an engine that comes after another, or goes, leaves nobody behind`, (t) => {
    const host = hostOf(t, 'one', 'two');
    for (let look = 0; look < 3; look++) host.pass({ one: 500, two: 500 });
    host.engine();
    for (let look = 0; look < 2; look++) host.pass({}, 1000);
    assert.deepEqual([host.weightOf('one'), host.weightOf('two')], [usual, usual]);
    for (let look = 0; look < 3; look++) host.pass({ one: 500, two: 500 });
    host.weights.release();
    assert.deepEqual([host.weightOf('one'), host.weightOf('two')], [usual, usual]);
  });

  test(`version ${version}: two engines agree, and what one that was killed has left comes forward`, (t) => {
    const host = hostOf(t, 'one', 'two', 'three');
    const [survivor, killed] = [host.weights, host.engine()];
    const pass = (used: Readonly<Record<string, number>>, ...engines: readonly FairWeights[]) => {
      host.use(used);
      for (const engine of engines) engine.look();
    };
    pass({ one: 0, two: 500, three: 500 }, survivor, killed);
    for (let look = 0; look < 3; look++) pass({ one: 50, two: 450, three: 500 }, survivor, killed);
    pass({ one: 900, two: 50, three: 50 }, killed);
    pass({ one: 50, two: 450, three: 500 }, killed);
    assert.equal(host.weightOf('one'), behind);
    // To the other it never was one that computes all the time.
    for (let look = 0; look < 10; look++) host.use({ one: 0, two: 500, three: 500 });
    for (let look = 0; look < 2; look++) pass({ one: 0, two: 500, three: 500 }, survivor);
    assert.deepEqual(
      ['one', 'two', 'three'].map((name) => host.weightOf(name)),
      [usual, behind, behind],
    );
  });

  test(`version ${version}: the smaller weights of an earlier version are not left to those who compute`, (t) => {
    const host = hostOf(t, 'one', 'two');
    for (const name of ['one', 'two']) host.weigh(name, version === 1 ? 4 : 1);
    for (let look = 0; look < 3; look++) host.pass({ one: 500, two: 500 });
    assert.deepEqual([host.weightOf('one'), host.weightOf('two')], [behind, behind]);
    for (let look = 0; look < 2; look++) host.pass({ one: 200, two: 200 }, 600);
    assert.deepEqual([host.weightOf('one'), host.weightOf('two')], [usual, usual]);
  });

  test(`version ${version}: sandboxes come and go between two looks`, (t) => {
    const host = hostOf(t, 'one', 'two');
    for (let look = 0; look < 2; look++) host.pass({ one: 500, two: 500 });
    host.remove('one');
    host.add('three');
    host.pass({ two: 500, three: 500 });
    assert.equal(host.weightOf('three'), usual, 'it has shown nothing yet');
    host.remove('two');
    host.pass({ three: 400 }, 600);
    assert.equal(host.weightOf('three'), usual);
  });

  test(`version ${version}: while others use less than half of the processors, sandboxes give way to them`, (t) => {
    const host = hostOf(t, 'one');
    const ofAll = () => host.weightOf('.');
    host.pass({ one: 500 });
    host.pass({ one: 500 }, 300);
    assert.equal(ofAll(), 8);
    host.pass({ one: 450 }, 100);
    assert.equal(ofAll(), 8, 'others use 45 % of them');
    host.pass({ one: 450 });
    assert.equal(ofAll(), 1024, 'others use 55 %');
    host.pass({ one: 450 }, 100);
    assert.equal(ofAll(), 1024, 'not back and forth at the bound');
    host.pass({ one: 900 });
    assert.equal(ofAll(), 8);
    host.weights.release();
    assert.equal(ofAll(), 1024);
  });
}
