import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { credentialColumns, NewCredential, RevokeCredential } from '../../parts/Credentials.tsx';
import { DataTable } from '../../parts/DataTable.tsx';
import { OnceDialog } from '../../parts/OnceDialog.tsx';
import { Panel } from '../../parts/Panel.tsx';

type Token = RestCallOutput<'tokens.list'>[number];

/** Personal access tokens, with which programs act as the user. */
export function Tokens() {
  const [isMaking, setMaking] = useState(false);
  const { data, error } = useCall('tokens.list', {});
  return (
    <Panel
      title="Personal access tokens"
      hint="A program with a token acts as you, in each of your organizations"
      isFlush
      actions={
        <Button icon="plus" onClick={() => setMaking(true)}>
          New token
        </Button>
      }
    >
      <DataTable
        label="Personal access tokens"
        columns={COLUMNS}
        rows={data}
        keyOf={({ id }) => id}
        error={error}
        empty={<p className="hint none">No tokens.</p>}
      />
      {isMaking ? <NewToken onClose={() => setMaking(false)} /> : null}
    </Panel>
  );
}

const COLUMNS = credentialColumns<Token>((token) => <Revoke {...token} />);

function Revoke(token: Token) {
  return <RevokeCredential credential={token} action={useAction('tokens.revoke')} />;
}

function NewToken({ onClose }: { readonly onClose: () => void }) {
  const make = useAction('tokens.create');
  const { token, name } = make.data ?? {};
  if (typeof token === 'string')
    return <OnceDialog title={`The token ${name}`} label="Token" secret={token} onClose={onClose} />;
  return (
    <NewCredential
      title="New personal access token"
      isBusy={make.isPending}
      error={make.error}
      onMake={(body) => make.mutate({ body })}
      onClose={onClose}
    />
  );
}
