import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli } from './cli-line.ts';
import { Tmux } from './tmux.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const cli = useCli((svc) => svc.succeed(['run', '-d', '--name', 'box', BUSYBOX]));

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
  await tmux.line('sleep 50');
  await tmux.until(/sleep 50$/);
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

test('progress is drawn on a terminal and wiped away', async () => {
  await using tmux = await Tmux.open(cli.svc.home, cli.svc.env);
  await tmux.line('head -c 100M /dev/zero > big; clear');
  await tmux.until(/^host>$/);
  await tmux.line(`${SVC} cp big box:/big; echo copied $?`);
  await tmux.until(/(█|░).* of 100 MiB, .*\/s/);
  assert.doesNotMatch(await tmux.until(/^copied 0$/m), /█|░/);
});
