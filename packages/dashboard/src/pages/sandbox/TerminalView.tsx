import { FitAddon } from '@xterm/addon-fit';
import { Terminal as Screen } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { SvcError, type Sandbox, type Terminal } from '@svc/sdk';
import { useEffect, useRef, useState } from 'react';
import { Button } from '../../parts/Button.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { withAdoptedStyles } from './adopted-styles.ts';
import { boundCounts } from './bound-counts.ts';
import { NotRunning } from './NotRunning.tsx';
import type { SandboxRecord } from './sandbox-record.ts';
import { useSandbox } from './use-sandbox.ts';

/** A shell in the sandbox, over the command channel. Output is drawn as text and never becomes part of the page. */
export function TerminalView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const { data } = useSandbox(sandbox.id);
  const [run, setRun] = useState(1);
  if (sandbox.status !== 'running')
    return <NotRunning icon="terminal" what="A terminal needs a sandbox that runs." />;
  return (
    <Panel
      title="Terminal"
      hint="The shell ends when you leave this page. Ctrl-Shift-Enter moves the focus out of it"
      isFlush
      actions={
        <Button icon="refresh" onClick={() => setRun(run + 1)}>
          New shell
        </Button>
      }
    >
      {data === undefined ? null : <Shell key={run} sandbox={data} />}
    </Panel>
  );
}

function Shell({ sandbox }: { readonly sandbox: Sandbox }) {
  const place = useRef<HTMLDivElement>(null);
  const [end, setEnd] = useState<unknown>(null);
  useEffect(() => {
    if (place.current === null) return undefined;
    const screen = makeScreen();
    const fit = new FitAddon();
    screen.loadAddon(fit);
    const element = place.current;
    withAdoptedStyles(() => screen.open(element));
    fit.fit();
    screen.focus();
    // All other keys, Tab too, go to the shell: this key lets keyboard users leave the terminal.
    screen.attachCustomKeyEventHandler(({ ctrlKey, shiftKey, key }) => {
      if (!ctrlKey || !shiftKey || key !== 'Enter') return true;
      element.closest<HTMLElement>('section')?.querySelector('button')?.focus();
      return false;
    });
    const watcher = new ResizeObserver(() => fit.fit());
    watcher.observe(element);
    const opening = connect(sandbox, screen, setEnd);
    return () => {
      watcher.disconnect();
      screen.dispose();
      void opening.then((terminal) => terminal?.[Symbol.asyncDispose]());
    };
  }, [sandbox]);
  return (
    <>
      <div className="screen" ref={place} data-testid="terminal" />
      {end === null ? null : typeof end === 'string' ? (
        <p className="terminal-end">{end}</p>
      ) : (
        <Failure error={end} />
      )}
    </>
  );
}

function makeScreen(): Screen {
  const screen = new Screen({
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
    fontSize: 13,
    cursorBlink: true,
    scrollback: 10_000,
    // Links in the output of a sandbox are not clickable.
    linkHandler: { activate: () => undefined },
    theme: {
      background: '#171411',
      foreground: '#efe9df',
      cursor: '#e8b36a',
      selectionBackground: '#4a3c28',
    },
  });
  boundCounts(screen);
  return screen;
}

/** Connects the screen to a shell. Undefined: it failed, and `setEnd` got the reason. */
async function connect(
  sandbox: Sandbox,
  screen: Screen,
  setEnd: (end: unknown) => void,
): Promise<Terminal | undefined> {
  try {
    const terminal = await sandbox.pty.open({ cols: screen.cols, rows: screen.rows });
    screen.onData((text) => void terminal.write(text).catch(() => undefined));
    screen.onResize((size) => void terminal.resize(size).catch(() => undefined));
    void show(terminal, screen).then(setEnd, setEnd);
    return terminal;
  } catch (error) {
    setEnd(error);
    return undefined;
  }
}

async function show(terminal: Terminal, screen: Screen): Promise<string | null> {
  // Back-pressure: the next piece is read when this one is on the screen, so a flood does not fill the page's memory.
  for await (const chunk of terminal.output) await new Promise<void>((done) => screen.write(chunk, done));
  try {
    const { code, signal } = await terminal.wait();
    return signal === undefined || signal === null
      ? `The shell ended with code ${code}.`
      : `The shell was ended by ${signal}.`;
  } catch (error) {
    // The page was left, which closed the shell.
    if (SvcError.is(error, 'aborted')) return null;
    throw error;
  }
}
