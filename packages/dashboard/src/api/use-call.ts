import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
  type QueryClient,
  type QueryKey,
  type UseMutationResult,
  type UseQueryResult,
} from '@tanstack/react-query';
import type { RestOperationName } from '@svc/contract/rest';
import type { RestCallInput, RestCallOutput, SvcError } from '@svc/sdk';
import { useContext } from 'react';
import { clientOf } from './client.ts';
import { OrganizationContext } from './organization.ts';

export interface CallSettings<Name extends RestOperationName> {
  readonly isOn?: boolean;
  /** Polling interval while the page is visible; false: no polling. */
  readonly everyMs?: number | false | ((latest: RestCallOutput<Name> | undefined) => number | false);
  /** Keeps showing the old answer until the answer to changed input arrives. */
  readonly keepsPrevious?: boolean;
}

/** The cached answer of an operation of the control plane, by its name in `docs/reference/operations.md`. */
export function useCall<Name extends RestOperationName>(
  name: Name,
  input: RestCallInput<Name>,
  { isOn = true, everyMs = false, keepsPrevious = false }: CallSettings<Name> = {},
): UseQueryResult<RestCallOutput<Name>, SvcError> {
  const slug = useContext(OrganizationContext)?.slug ?? null;
  return useQuery<RestCallOutput<Name>, SvcError>({
    queryKey: callKey(slug, name, input),
    queryFn: ({ signal }) => clientOf(slug).call(name, input, { signal }),
    enabled: isOn,
    refetchInterval: typeof everyMs === 'function' ? ({ state }) => everyMs(state.data) : everyMs,
    ...(keepsPrevious ? { placeholderData: keepPreviousData } : {}),
  });
}

interface Page<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}
type ItemOf<Output> = Output extends Page<infer Item> ? Item : never;

export interface Pages<Item> {
  readonly items: readonly Item[] | undefined;
  readonly error: SvcError | null;
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  readonly loadMore: () => void;
}

/** Like `useCall`, for paged lists; `query` of the input without its cursor. */
export function usePages<Name extends RestOperationName>(
  name: Name,
  input: RestCallInput<Name>,
  { isOn = true, everyMs = false }: { readonly isOn?: boolean; readonly everyMs?: number | false } = {},
): Pages<ItemOf<RestCallOutput<Name>>> {
  const slug = useContext(OrganizationContext)?.slug ?? null;
  type Answer = Page<ItemOf<RestCallOutput<Name>>>;
  const result = useInfiniteQuery<Answer, SvcError, { pages: Answer[] }, QueryKey, string | null>({
    queryKey: [...callKey(slug, name, input), 'pages'],
    queryFn: async ({ pageParam, signal }) => {
      const cursor = pageParam === null ? {} : { cursor: pageParam };
      const { query = {} } = input as { readonly query?: object };
      // The operation takes a cursor, and its answers are pages.
      const paged = { ...input, query: { ...query, ...cursor } } as RestCallInput<Name>;
      return (await clientOf(slug).call(name, paged, { signal })) as Answer;
    },
    initialPageParam: null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
    placeholderData: keepPreviousData,
    enabled: isOn,
    refetchInterval: everyMs,
  });
  return {
    items: result.data?.pages.flatMap(({ data }) => data),
    error: result.error,
    hasMore: result.hasNextPage,
    isLoadingMore: result.isFetchingNextPage,
    loadMore: () => void result.fetchNextPage(),
  };
}

export interface ActionSettings<Name extends RestOperationName> {
  /** Operations whose cached answers are invalidated afterwards; those of the same resource always are. */
  readonly refreshes?: readonly RestOperationName[];
  /** An optimistic update of the cache; the function that it returns undoes it when the call fails. */
  readonly optimistically?: (cache: QueryClient, input: RestCallInput<Name>) => () => void;
  readonly onDone?: (output: RestCallOutput<Name>, input: RestCallInput<Name>) => void;
}

/** A call that changes something. */
export function useAction<Name extends RestOperationName>(
  name: Name,
  { refreshes = [], optimistically, onDone }: ActionSettings<Name> = {},
): UseMutationResult<RestCallOutput<Name>, SvcError, RestCallInput<Name>, (() => void) | undefined> {
  const slug = useContext(OrganizationContext)?.slug ?? null;
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (input: RestCallInput<Name>) => clientOf(slug).call(name, input),
    onMutate: async (input) => {
      if (optimistically === undefined) return undefined;
      // A pending answer would show the old state again.
      await cache.cancelQueries({ predicate: ({ queryKey }) => concerns(queryKey, resourceOf(name)) });
      return optimistically(cache, input);
    },
    onError: (_error, _input, undo) => undo?.(),
    onSuccess: (output, input) => onDone?.(output, input),
    onSettled: async () => {
      const resources = [name, ...refreshes].map(resourceOf);
      await cache.invalidateQueries({
        predicate: ({ queryKey }) => resources.some((resource) => concerns(queryKey, resource)),
      });
    },
  });
}

/** The cache key of a call. */
export function callKey(slug: string | null, name: RestOperationName, input: unknown): QueryKey {
  return ['call', slug, name, input];
}

/** `sandboxes.stop` → `sandboxes` */
function resourceOf(name: RestOperationName): string {
  return name.slice(0, name.indexOf('.'));
}

function concerns(key: QueryKey, resource: string): boolean {
  return typeof key[2] === 'string' && key[2].startsWith(`${resource}.`);
}
