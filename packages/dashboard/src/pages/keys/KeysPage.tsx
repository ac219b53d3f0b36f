import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useAction, usePages } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { CodeBlock } from '../../parts/CodeBlock.tsx';
import { credentialColumns, NewCredential, RevokeCredential } from '../../parts/Credentials.tsx';
import { DataTable } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { OnceDialog } from '../../parts/OnceDialog.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';

type ApiKey = RestCallOutput<'apiKeys.list'>['data'][number];

/** Keys that programs use in the name of the organization. */
export function KeysPage() {
  const [isMaking, setMaking] = useState(false);
  const pages = usePages('apiKeys.list', { query: { limit: 50 } });
  const make = (
    <Button look="primary" icon="plus" onClick={() => setMaking(true)}>
      New key
    </Button>
  );
  return (
    <Page
      title="API keys"
      hint="A program with a key acts for the organization. Members see their own keys, admins all keys."
      actions={make}
    >
      <Panel isFlush>
        <DataTable
          label="API keys"
          columns={COLUMNS}
          rows={pages.items}
          keyOf={({ id }) => id}
          error={pages.error}
          more={pages}
          empty={
            <EmptyState icon="key" title="No keys yet">
              <p>The CLI, the SDK and MCP clients need one to reach this organization.</p>
              {make}
            </EmptyState>
          }
        />
      </Panel>
      {isMaking ? <NewKey onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

const COLUMNS = credentialColumns<ApiKey>((key) => <Revoke {...key} />);

function Revoke(key: ApiKey) {
  return <RevokeCredential credential={key} action={useAction('apiKeys.revoke')} />;
}

function NewKey({ onClose }: { readonly onClose: () => void }) {
  const make = useAction('apiKeys.create');
  const { key, name } = make.data ?? {};
  if (typeof key === 'string')
    return (
      <OnceDialog title={`The key ${name}`} label="API key" secret={key} onClose={onClose}>
        <CodeBlock
          label="In a shell"
          text={`export SVC_API_URL=${location.origin}\nexport SVC_API_KEY=…\nsvc ps`}
        />
      </OnceDialog>
    );
  return (
    <NewCredential
      title="New API key"
      isBusy={make.isPending}
      error={make.error}
      onMake={(body) => make.mutate({ body })}
      onClose={onClose}
    />
  );
}
