import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { releaseBinary } from './engine.ts';
import { FilterProgram } from './filter-program.ts';

const EPERM = 1;
const ENOSYS = 38;
const TIOCSTI = 0x5412n;
const FIONREAD = 0x541bn;
const NEW_USER = 0x1000_0000n;
const SIGCHLD = 17n;
const NETLINK = 16n;
const FIFO = 0o010000n;
const DEVICE = 0o020000n;

// Of the kernel: linux/audit.h, asm/unistd_64.h and asm-generic/unistd.h.
const TARGETS = {
  x86_64: {
    architecture: 0xc000_003e,
    allowed: { read: 0, openat: 257, openat2: 437, execve: 59, ppoll: 271, clone: 56, wait4: 61, rseq: 334 },
    refused: {
      mount: 165,
      bpf: 321,
      setns: 308,
      keyctl: 250,
      io_uring_setup: 425,
      move_mount: 429,
      init_module: 175,
    },
    ioctl: 16,
    clone: 56,
    socket: 41,
    mknodat: 259,
    ptrace: 101,
  },
  aarch64: {
    architecture: 0xc000_00b7,
    allowed: {
      read: 63,
      openat: 56,
      openat2: 437,
      execve: 221,
      ppoll: 73,
      clone: 220,
      wait4: 260,
      rseq: 293,
    },
    refused: {
      mount: 40,
      bpf: 280,
      setns: 268,
      keyctl: 219,
      io_uring_setup: 425,
      move_mount: 429,
      init_module: 105,
    },
    ioctl: 29,
    clone: 220,
    socket: 198,
    mknodat: 33,
    ptrace: 117,
  },
} as const;
const CLONE3 = 435;
const NEWER = 9999;
/** gVisor takes a note per instruction for each call there is, at every fork: docs/decisions/0128-seccomp-filter-begins-with-a-binary-search.md. */
const SHORT = 256;

for (const [target, calls] of Object.entries(TARGETS)) {
  const header = execFileSync(join(releaseBinary, '../filter-generate'), [target], { encoding: 'utf8' });
  const ask = (name: string) => {
    const program = FilterProgram.find(header, `${name}_filter`);
    const { architecture } = calls;
    return (number: number, ...args: bigint[]) => program.run({ architecture, number, args });
  };

  for (const profile of ['default', 'restricted'])
    test(`the ${profile} profile for ${target} knows its calls by their numbers`, () => {
      const run = ask(profile);
      for (const [name, number] of Object.entries(calls.allowed)) assert.equal(run(number), 'allow', name);
      for (const [name, number] of Object.entries(calls.refused)) assert.equal(run(number), EPERM, name);
      assert.equal(run(calls.clone, NEW_USER | SIGCHLD), EPERM);
      assert.equal(run(calls.ioctl, 0n, FIONREAD), 'allow');
      assert.equal(run(calls.ioctl, 0n, TIOCSTI), EPERM);
      assert.equal(run(calls.ioctl, 0n, 0xdead_beef_0000_0000n | TIOCSTI), EPERM);
      assert.equal(run(calls.mknodat, 0n, 0n, FIFO), 'allow');
      assert.equal(run(CLONE3), ENOSYS);
      assert.equal(run(NEWER), ENOSYS);
    });

  test(`the filters for ${target} are short`, () => {
    for (const name of ['default', 'restricted'])
      assert.ok(FilterProgram.find(header, `${name}_filter`).length <= SHORT, name);
  });

  test(`the restricted profile for ${target} refuses more`, () => {
    const [usual, restricted] = [ask('default'), ask('restricted')];
    const calledWith: [number, ...bigint[]][] = [
      [calls.ptrace],
      [calls.socket, NETLINK],
      [calls.mknodat, 0n, 0n, DEVICE],
    ];
    for (const words of calledWith)
      assert.deepEqual([usual(...words), restricted(...words)], ['allow', EPERM]);
  });

  test(`calls of another architecture do not exist for the filters of ${target}`, () => {
    const others = Object.values(TARGETS).filter(({ architecture }) => architecture !== calls.architecture);
    for (const { architecture, allowed } of others)
      for (const name of ['default', 'restricted'])
        for (const number of Object.values(allowed))
          assert.equal(FilterProgram.find(header, `${name}_filter`).run({ architecture, number }), ENOSYS);
  });
}
