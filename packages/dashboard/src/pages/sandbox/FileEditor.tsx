import type { Sandbox } from '@svc/sdk';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { Button } from '../../parts/Button.tsx';
import { Dialog } from '../../parts/Dialog.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { Loading } from '../../parts/Loading.tsx';
import { showToast } from '../../parts/toast-list.ts';
import { languageOfPath } from './language-of-path.ts';

/** Loaded on demand, because it is large and used only where code is written. */
const CodeEditor = lazy(async () => ({ default: (await import('./CodeEditor.tsx')).CodeEditor }));

const MAX_EDITED_BYTES = 1024 * 1024;

interface FileEditorProps {
  readonly sandbox: Sandbox;
  readonly path: string;
  readonly onClose: () => void;
}

/** Edits a text of up to 1 MiB. A file that is not text can only be downloaded, because saving would destroy it. */
export function FileEditor({ sandbox, path, onClose }: FileEditorProps) {
  const { data, error } = useQuery({
    queryKey: ['file', sandbox.id, path],
    queryFn: async ({ signal }) => {
      const bytes = await sandbox.files.read(path, { maxBytes: MAX_EDITED_BYTES, signal });
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    },
    gcTime: 0,
    retry: false,
  });
  return (
    <Dialog title={path} onClose={onClose}>
      {error instanceof TypeError ? (
        <p className="panel-body">This file is not text. Download it to open it.</p>
      ) : error === null ? null : (
        <Failure error={error} />
      )}
      {data === undefined && error === null ? <Loading /> : null}
      {data === undefined ? null : <Editor sandbox={sandbox} path={path} text={data} onClose={onClose} />}
    </Dialog>
  );
}

function Editor({ sandbox, path, text, onClose }: FileEditorProps & { readonly text: string }) {
  const [value, setValue] = useState(text);
  const [error, setError] = useState<unknown>(null);
  const save = async (): Promise<void> => {
    try {
      await sandbox.files.write(path, value);
      showToast(`${path} is saved`);
      onClose();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <div className="panel-body file-editor">
      <Suspense fallback={<Loading />}>
        <CodeEditor
          label={`Content of ${path}`}
          text={text}
          language={languageOfPath(path)}
          onChange={setValue}
        />
      </Suspense>
      {error === null ? null : <Failure error={error} />}
      <footer className="dialog-foot">
        <Button onClick={onClose}>Close</Button>
        <Button look="primary" disabled={value === text} onClick={() => void save()}>
          Save
        </Button>
      </footer>
    </div>
  );
}
