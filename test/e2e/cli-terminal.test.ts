import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { importChanged, importConfigured } from '../engine/image-fixture.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli } from './cli-line.ts';
import { importHostPython } from './host-python.ts';
import { Tmux } from './tmux.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const cli = useCli(async (svc) => {
  await svc.succeed(['run', '-d', '--name', 'box', BUSYBOX]);
  await svc.succeed(['volume', 'create', 'data', '--capacity', '1']);
  await svc.succeed(['exec', '-d', '--name', 'job', 'box', 'sleep', '10000']);
});

/** A terminal whose `svc` talks to our server, and a shell in the sandbox. */
async function openShell(): Promise<Tmux> {
  const tmux = await Tmux.open(cli.svc.home, cli.svc.env);
  await tmux.line(`svc() { ${SVC} "$@"; }; clear; svc exec -it -e 'PS1=box> ' box sh`);
  await tmux.until(/box>$/);
  return tmux;
}

test('a shell in a terminal: size, resize, Ctrl-C, exit code, and our own terminal as it was', async () => {
  await using tmux = await openShell();
  await tmux.line('clear; tty; stty size; echo $TERM');
  await tmux.until(/\/dev\/pts\/\d+\n24 80\ntmux-256color\nbox>$/);
  await tmux.resize(100, 30);
  await tmux.line('clear; until [ "$(stty size)" = "30 100" ]; do sleep 0.1; done; echo resized');
  await tmux.until(/^resized\nbox>$/m);
  await tmux.line('clear; echo begun; sleep 100');
  await tmux.until(/^begun$/m);
  await tmux.key('C-c');
  await tmux.until(/\^C\n+box>$/);
  await tmux.line('echo code $?');
  await tmux.until(/^code 130$/m);
  await tmux.line('exit 5');
  await tmux.until(/host>$/);
  await tmux.line('code=$?; clear; echo ended $code; stty -a | grep -ow -e -icanon -e -echo; echo checked');
  const screen = await tmux.until(/^ended 5\n(.*\n)*checked$/m);
  assert.doesNotMatch(screen, /^-(icanon|echo)$/m);
});

test('full-screen programs, UTF-8 and 24-bit colour work', async () => {
  await using tmux = await openShell();
  await tmux.line('vi /tmp/note');
  await tmux.until(/~\n.*\/tmp\/note/s);
  await tmux.type('iUmlaut äöü 日本 🚀');
  await tmux.until(/日本 🚀/);
  await tmux.key('Escape');
  await tmux.until(/^- \/tmp\/note/m);
  await tmux.line(':wq');
  await tmux.until(/box>$/);
  await tmux.line('clear; cat /tmp/note');
  await tmux.until(/^Umlaut äöü 日本 🚀$/m);
  await tmux.line(String.raw`clear; printf '\033[38;2;1;2;3mcoloured\033[0m\n'`);
  await tmux.until(/^coloured$/m);
  await tmux.line('clear; top -d 1');
  await tmux.until(/PID +PPID/);
  await tmux.type('q');
  await tmux.until(/box>$/);
  // What has spoken runs in the foreground; before that the key would be lost.
  await tmux.line(`clear; sh -c 'echo begun; sleep 50'`);
  await tmux.until(/^begun$/m);
  await tmux.key('C-z');
  await tmux.until(/\[1\]\+ +Stopped/);
});

test('Ctrl-] leaves the terminal, which is usable again, and the sandbox runs on', async () => {
  await using tmux = await openShell();
  await tmux.line('clear; echo begun; sleep 1000');
  await tmux.until(/^begun$/m);
  await tmux.key('C-]');
  await tmux.until(/left box.*\n(.*\n)*host>$/);
  await tmux.line('code=$?; clear; echo code $code; stty -a | grep -ow -e -icanon -e -echo; echo checked');
  const screen = await tmux.until(/^code 255\n(.*\n)*checked$/m);
  assert.doesNotMatch(screen, /^-(icanon|echo)$/m);
  assert.match(await cli.svc.succeed(['ps']), /box +running/);
});

test('a detached terminal is left and come back to, with what was on it, and ends with its own code', async () => {
  await using tmux = await Tmux.open(cli.svc.home, cli.svc.env);
  await tmux.line(`svc() { ${SVC} "$@"; }; svc exec -dit -e 'PS1=box> ' --name session box sh; clear`);
  await tmux.until(/^host>$/);
  await tmux.line('svc process attach box session');
  await tmux.until(/box>$/);
  await tmux.line('remembered=42; stty size');
  await tmux.until(/^24 80\nbox>$/m);
  await tmux.key('C-]');
  await tmux.until(/it runs on as session\n(.*\n)*host>$/);
  await tmux.line('clear; svc process attach box session');
  await tmux.until(/^24 80\n(.*\n)*box>$/m);
  await tmux.line('echo still $remembered; exit 6');
  await tmux.until(/^still 42\n(.*\n)*host>$/m);
  await tmux.line('code=$?; clear; echo code $code');
  await tmux.until(/^code 6$/m);
});

test('a terminal is given back also when what runs in it is killed', async () => {
  await using tmux = await openShell();
  await tmux.line('clear; echo begun; exec sleep 1234');
  await tmux.until(/^begun$/m);
  const find = "ps -o pid,args | awk '/[s]leep 1234/ { print $1 }'";
  await cli.svc.succeed(['exec', 'box', 'sh', '-c', `kill -KILL $(${find})`]);
  await tmux.until(/host>$/);
  await tmux.line('code=$?; clear; echo code $code; stty -a | grep -ow -e -icanon -e -echo; echo checked');
  const screen = await tmux.until(/^code 137\n(.*\n)*checked$/m);
  assert.doesNotMatch(screen, /^-(icanon|echo)$/m);
});

test('run without a command is a shell whose sandbox is gone afterwards; ssh is a shell as well', async () => {
  await using tmux = await Tmux.open(cli.svc.home, cli.svc.env);
  await tmux.line(`svc() { ${SVC} "$@"; }; clear; svc run ${BUSYBOX}`);
  await tmux.until(/\/ #$/);
  await tmux.line('exit 3');
  await tmux.until(/host>$/);
  await tmux.line('code=$?; clear; echo code $code; svc ps -aq; svc ssh box');
  await tmux.until(/^code 3\nbox\n(.*\n)*\/ #$/m);
  assert.equal(await cli.svc.succeed(['ssh', 'box', 'echo', '$((6*7))']), '42\n');
});

test('a Python prompt: input(), Ctrl-C at the prompt and in a loop, arrow keys, Ctrl-D', async () => {
  await importHostPython(cli.svc.server.engine, 'python');
  await using tmux = await Tmux.open(cli.svc.home, cli.svc.env);
  // Since 3.13 another prompt is the default, which the image lacks.
  await tmux.line(`svc() { ${SVC} "$@"; }; clear; svc run -it -e PYTHON_BASIC_REPL=1 python python3 -q`);
  await tmux.until(/>>>$/);
  await tmux.line('name = input("who? ")');
  await tmux.until(/^who\?$/m);
  await tmux.line('Ada 🚀');
  await tmux.until(/^who\? Ada 🚀\n>>>$/m);
  await tmux.line('print(len(name), name.upper())');
  await tmux.until(/^5 ADA 🚀\n>>>$/m);
  await tmux.type('half a line');
  await tmux.until(/half a line$/);
  await tmux.key('C-c');
  await tmux.until(/half a line\nKeyboardInterrupt\n>>>$/);
  await tmux.line('print("lo" + "op"); [None for _ in iter(int, 1)]');
  await tmux.until(/^loop$/m);
  await tmux.key('C-c');
  await tmux.until(/\nKeyboardInterrupt\n>>>$/);
  await tmux.key('Up');
  await tmux.key('Up');
  await tmux.until(/>>> print\(len\(name\), name\.upper\(\)\)$/);
  await tmux.key('Enter');
  await tmux.until(/KeyboardInterrupt\n.*\n5 ADA 🚀\n>>>$/);
  await tmux.key('C-d');
  await tmux.until(/host>$/);
  await tmux.line('echo code $?');
  await tmux.until(/^code 0$/m);
});

test('run in a terminal prefers the command of the image, then bash, and Ctrl-Z stops neither', async () => {
  const { engine } = cli.svc.server;
  await importChanged(engine, 'speaking', async (root) => {
    await writeFile(join(root, 'bin/bash'), '#!/bin/sh\necho this is bash; exec cat\n', { mode: 0o755 });
  });
  const busybox = { name: 'bin/busybox', body: await readFile('/bin/busybox'), mode: 0o755 };
  const Cmd = ['/bin/busybox', 'sh', '-c', 'echo this is my own; exec /bin/busybox cat'];
  await importConfigured(engine, 'with-command', { Cmd }, [{ name: 'bin/', type: 'directory' }, busybox]);
  await using tmux = await Tmux.open(cli.svc.home, cli.svc.env);
  for (const [image, greeting] of [
    ['with-command', 'this is my own'],
    ['speaking', 'this is bash'],
  ]) {
    await tmux.line(`clear; ${SVC} run -it ${image}`);
    await tmux.until(new RegExp(`^${greeting}$`, 'm'));
    await tmux.key('C-z');
    await tmux.line('alive');
    await tmux.until(/alive\nalive$/);
    await tmux.key('C-d');
    await tmux.until(/host>$/);
  }
});

/** How each shell is started with our script and a prompt of its own. */
const SHELLS = {
  bash: 'bash --norc --noprofile',
  zsh: 'zsh -f',
  fish: 'fish --no-config',
} as const;
const SET_UP = {
  bash: `PS1='sh> '; source <(svc completion bash); clear`,
  zsh: `PS1='sh> '; autoload -Uz compinit; compinit -D -u; source <(svc completion zsh); clear`,
  fish: `set -g fish_autosuggestion_enabled 0; function fish_prompt; echo -n 'sh> '; end; svc completion fish | source; clear`,
} as const;

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  test(`${shell} completes commands, options, their values, and names of sandboxes`, async () => {
    const folder = join(cli.svc.home, 'bin');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'svc'), `#!/bin/sh\nexec ${SVC} "$@"\n`, { mode: 0o755 });
    const PATH = `${folder}:${cli.svc.env['PATH']}`;
    await using tmux = await Tmux.open(cli.svc.home, { ...cli.svc.env, PATH });
    await tmux.line(SHELLS[shell]);
    await tmux.until(/[$%>#]$/);
    await tmux.line(SET_UP[shell]);
    await tmux.until(/^sh>$/);
    for (const [typed, completed] of [
      ['svc ex', 'svc exec'],
      ['svc run --idle', 'svc run --idle-timeout'],
      ['svc run --isolation gv', 'svc run --isolation gvisor'],
      ['svc exec bo', 'svc exec box'],
      ['svc cp file bo', 'svc cp file box:'],
      ['svc run bu', 'svc run busybox'],
      ['svc volume inspect da', 'svc volume inspect data'],
      ['svc process logs box jo', 'svc process logs box job'],
    ] as const) {
      await tmux.type(typed);
      await pressTabUntil(tmux, new RegExp(`^sh> ${completed}$`, 'm'));
      await tmux.key('C-u');
      await tmux.until(/^sh>$/);
    }
  });
}

/** Presses again after a while: completion waits two seconds at most, and a busy machine may take that long. */
async function pressTabUntil(tmux: Tmux, expected: RegExp): Promise<void> {
  let pressedAt = Number.NEGATIVE_INFINITY;
  const isThere = async () => {
    if (expected.test(await tmux.screen())) return true;
    if (performance.now() - pressedAt > 8000) {
      pressedAt = performance.now();
      await tmux.key('Tab');
    }
    return false;
  };
  await waitUntil(isThere, { what: `${String(expected)}, but: ${await tmux.screen()}` });
}

test('progress is drawn on a terminal and wiped away', async () => {
  await using tmux = await Tmux.open(cli.svc.home, cli.svc.env);
  await tmux.line('head -c 100M /dev/zero > big; clear');
  await tmux.until(/^host>$/);
  const drawn = join(cli.svc.home, 'drawn');
  await tmux.record(drawn);
  await tmux.line(`${SVC} cp big box:/big; echo copied $?`);
  assert.doesNotMatch(await tmux.until(/^copied 0$/m), /█|░/);
  const isDrawn = async () => /(█|░).* of 100 MiB, .*\/s/.test(await readFile(drawn, 'utf8').catch(() => ''));
  await waitUntil(isDrawn, { what: 'the progress was drawn' });
});
