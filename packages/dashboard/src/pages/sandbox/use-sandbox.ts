import { Sandbox } from '@svc/sdk';
import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useClient } from '../../api/organization.ts';

/** The SDK's sandbox object; its connection is closed when the component is unmounted. */
export function useSandbox(id: string): UseQueryResult<Sandbox> {
  const client = useClient();
  const result = useQuery({
    queryKey: ['sandbox', id],
    queryFn: ({ signal }) => Sandbox.connect(id, { client, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const { data } = result;
  useEffect(() => () => data?.close(), [data]);
  return result;
}
