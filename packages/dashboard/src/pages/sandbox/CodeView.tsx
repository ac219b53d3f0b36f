import { useState } from 'react';
import { Button } from '../../parts/Button.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { LinesField, SelectField } from '../../parts/Field.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { CodeOutput } from './CodeOutput.tsx';
import { NotRunning } from './NotRunning.tsx';
import type { SandboxRecord } from './sandbox-record.ts';
import { useCodeRun, type CodeRun } from './use-code-run.ts';

const LANGUAGES = [
  ['python', 'Python'],
  ['javascript', 'JavaScript'],
] as const;
type Language = (typeof LANGUAGES)[number][0];

/** Code in an interpreter that keeps its state while the sandbox runs. */
export function CodeView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const [language, setLanguage] = useState<Language>('python');
  const [code, setCode] = useState('');
  const run = useCodeRun(sandbox.id);
  if (sandbox.status !== 'running')
    return <NotRunning icon="terminal" what="Code can be run while it runs." />;
  const start = (): void => {
    if (code.trim() !== '' && !run.isRunning) void run.start(code, language);
  };
  return (
    <>
      <Panel title="Run code" hint="Variables and functions stay for later runs, by any user of this sandbox">
        <div className="stack">
          <SelectField
            label="Language"
            choices={LANGUAGES}
            value={language}
            onChange={(value) => setLanguage(value === 'javascript' ? 'javascript' : 'python')}
          />
          <LinesField
            label="Code"
            hint="Ctrl-Enter runs it. Figures, frames and what is given to display() are shown below"
            placeholder={language === 'python' ? 'print(6 * 7)' : 'console.log(6 * 7)'}
            rows={8}
            value={code}
            onChange={setCode}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) start();
            }}
          />
          <div className="actions">
            <Button look="primary" icon="play" isBusy={run.isRunning} onClick={start}>
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
      <Outcome run={run} />
    </>
  );
}

function Outcome({ run }: { readonly run: CodeRun }) {
  if (run.error !== null) return <Failure error={run.error} />;
  if (run.shown.length === 0 && run.end === null) return null;
  return (
    <Panel title="Output" hint={run.end ?? 'Running…'}>
      <CodeOutput shown={run.shown} />
    </Panel>
  );
}
