import type { FileInfo, Sandbox } from '@svc/sdk';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { ConfirmDialog } from '../../parts/Dialog.tsx';
import { DownloadButton } from '../../parts/DownloadButton.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { formatBytes } from '../../parts/format-amount.ts';
import { Icon } from '../../parts/Icon.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import { showToast } from '../../parts/toast-list.ts';
import { UploadButton } from '../../parts/UploadButton.tsx';
import { useSearch } from '../../router/location.ts';
import { FileEditor } from './FileEditor.tsx';
import { joinPath, parentOf } from './guest-path.ts';
import { NotRunning } from './NotRunning.tsx';
import type { SandboxRecord } from './sandbox-record.ts';
import { uploadFile } from './upload-file.ts';
import { useSandbox } from './use-sandbox.ts';

/** A file browser for the sandbox. The current folder is in the address. */
export function FilesView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const { data } = useSandbox(sandbox.id);
  if (sandbox.status !== 'running')
    return <NotRunning icon="folder" what="Its files can be reached while it runs." />;
  return data === undefined ? null : <Folder sandbox={data} />;
}

function Folder({ sandbox }: { readonly sandbox: Sandbox }) {
  const [search, setSearch] = useSearch();
  const path = search.get('path') ?? '/';
  const [edited, setEdited] = useState<string | null>(null);
  const cache = useQueryClient();
  const key = ['files', sandbox.id, path];
  const { data, error } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => sandbox.files.list(path, { signal }),
  });
  const refresh = () => void cache.invalidateQueries({ queryKey: key });
  const open = (file: FileInfo) =>
    file.kind === 'file'
      ? setEdited(joinPath(path, file.name))
      : setSearch('path', joinPath(path, file.name));
  return (
    <Panel
      title={path}
      isFlush
      actions={
        <>
          {path === '/' ? null : (
            <Button icon="folder" onClick={() => setSearch('path', parentOf(path))}>
              Up
            </Button>
          )}
          <UploadButton send={(file, watch) => uploadFile(sandbox, path, file, watch)} onDone={refresh} />
        </>
      }
    >
      <DataTable
        label={`Files in ${path}`}
        columns={columnsOf(sandbox, path, open, refresh)}
        rows={data}
        keyOf={({ name }) => name}
        error={error as null}
        empty={
          <EmptyState icon="folder" title="This folder is empty">
            <p>Upload a file into it, or write one from the terminal.</p>
          </EmptyState>
        }
      />
      {edited === null ? null : (
        <FileEditor
          sandbox={sandbox}
          path={edited}
          onClose={() => {
            setEdited(null);
            refresh();
          }}
        />
      )}
    </Panel>
  );
}

function columnsOf(
  sandbox: Sandbox,
  folder: string,
  open: (file: FileInfo) => void,
  refresh: () => void,
): readonly Column<FileInfo>[] {
  return [
    {
      title: 'Name',
      look: 'main',
      render: (file) => (
        <button type="button" className="file-name" onClick={() => open(file)}>
          <Icon name={file.kind === 'directory' ? 'folder' : 'file'} />
          {file.name}
        </button>
      ),
    },
    {
      title: 'Size',
      look: 'end',
      render: ({ kind, sizeBytes }) => (kind === 'file' ? formatBytes(sizeBytes) : '–'),
    },
    {
      title: 'Mode',
      look: 'small',
      render: ({ mode }) => <code>{(mode & 0o7777).toString(8).padStart(4, '0')}</code>,
    },
    {
      title: 'Changed',
      look: 'small',
      render: ({ modifiedAt }) => <Time at={modifiedAt === null ? null : modifiedAt.toISOString()} />,
    },
    {
      title: 'Actions',
      look: 'end',
      render: (file) => <FileActions sandbox={sandbox} folder={folder} file={file} refresh={refresh} />,
    },
  ];
}

interface FileActionsProps {
  readonly sandbox: Sandbox;
  readonly folder: string;
  readonly file: FileInfo;
  readonly refresh: () => void;
}

function FileActions({ sandbox, folder, file, refresh }: FileActionsProps) {
  const [isAsking, setAsking] = useState(false);
  const path = joinPath(folder, file.name);
  const remove = async (): Promise<void> => {
    setAsking(false);
    try {
      await sandbox.files.remove(path, { recursive: true });
      showToast(`${file.name} is deleted`);
    } catch (error) {
      showToast(`${file.name} was not deleted`, error);
    }
    refresh();
  };
  return (
    <div className="actions">
      {file.kind === 'file' ? (
        <DownloadButton
          path={file.name}
          sizeBytes={file.sizeBytes}
          read={(options) => sandbox.files.readStream(path, options)}
        />
      ) : null}
      <Button
        look="quiet"
        icon="trash"
        aria-label={`Delete ${file.name}`}
        title="Delete"
        onClick={() => setAsking(true)}
      />
      {isAsking ? (
        <ConfirmDialog
          title={`Delete ${file.name}?`}
          action="Delete it"
          isBusy={false}
          error={null}
          onConfirm={() => void remove()}
          onClose={() => setAsking(false)}
        >
          <p>
            {file.kind === 'directory' ? 'The folder and all that is in it' : 'The file'} is gone for good.
          </p>
        </ConfirmDialog>
      ) : null}
    </div>
  );
}
