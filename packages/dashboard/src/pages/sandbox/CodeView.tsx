import { lazy, Suspense, useId, useState } from 'react';
import { Button } from '../../parts/Button.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { SelectField } from '../../parts/Field.tsx';
import { Loading } from '../../parts/Loading.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { CodeOutput } from './CodeOutput.tsx';
import { NotRunning } from './NotRunning.tsx';
import type { SandboxRecord } from './sandbox-record.ts';
import { useCodeRun, type CodeRun } from './use-code-run.ts';

/** Loaded on demand, because it is large and used only where code is written. */
const CodeEditor = lazy(async () => ({ default: (await import('./CodeEditor.tsx')).CodeEditor }));

const LANGUAGES = [
  ['python', 'Python'],
  ['javascript', 'JavaScript'],
] as const;
type Language = (typeof LANGUAGES)[number][0];

/** Runs code in an interpreter that keeps its state while the sandbox runs, and shows its output. */
export function CodeView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const run = useCodeRun(sandbox.id);
  if (sandbox.status !== 'running')
    return <NotRunning icon="terminal" what="Code can be run while it runs." />;
  return (
    <div className="code-beside">
      <Written run={run} />
      <Outcome run={run} />
    </div>
  );
}

function Written({ run }: { readonly run: CodeRun }) {
  const [language, setLanguage] = useState<Language>('python');
  const [code, setCode] = useState('');
  const hint = useId();
  const isEmpty = code.trim() === '';
  const start = (): void => {
    if (!isEmpty && !run.isRunning) void run.start(code, language);
  };
  return (
    <Panel title="Run code" hint="Variables and functions stay for later runs, by any user of this sandbox">
      <div className="stack">
        <SelectField
          label="Language"
          choices={LANGUAGES}
          value={language}
          onChange={(value) => setLanguage(value === 'javascript' ? 'javascript' : 'python')}
        />
        <div>
          <Suspense fallback={<Loading />}>
            <CodeEditor
              label="Code"
              describedBy={hint}
              text=""
              language={language}
              placeholder={language === 'python' ? 'print(6 * 7)' : 'console.log(6 * 7)'}
              onChange={setCode}
              onRun={start}
            />
          </Suspense>
          <p className="hint" id={hint}>
            Ctrl-Enter runs it. Escape, then Tab leaves the editor
          </p>
        </div>
        <div className="actions">
          <Button look="primary" icon="play" isBusy={run.isRunning} disabled={isEmpty} onClick={start}>
            Run
          </Button>
          {run.isRunning ? (
            <Button icon="stop" onClick={run.interrupt}>
              Interrupt
            </Button>
          ) : null}
        </div>
      </div>
    </Panel>
  );
}

function Outcome({ run }: { readonly run: CodeRun }) {
  const isUnused = run.shown.length === 0 && run.end === null && !run.isRunning;
  return (
    <Panel title="Output" hint={isUnused ? undefined : (run.end ?? 'Running…')}>
      {run.error !== null ? (
        <Failure error={run.error} />
      ) : isUnused ? (
        <EmptyState icon="play" title="Nothing has run yet">
          <p>What the code prints appears here, as do figures, frames and what is given to display().</p>
        </EmptyState>
      ) : run.shown.length === 0 && run.isRunning ? null : (
        <CodeOutput shown={run.shown} />
      )}
    </Panel>
  );
}
