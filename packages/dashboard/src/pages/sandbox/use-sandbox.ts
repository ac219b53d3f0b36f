import { Sandbox } from '@svc/sdk';
import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useClient } from '../../api/organization.ts';

/** The sandbox as the SDK has it, with a connection of its own that ends with the page that uses it. */
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
