import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, nullable, pageOf, Timestamp, TimestampInput, Uuid } from './fields.ts';
import { EVENT_STREAM, type RestOperation } from './rest-operation.ts';

export const LOG_SOURCES = ['stdout', 'stderr', 'output', 'system'] as const;
const SOURCE = `(${LOG_SOURCES.join('|')})`;
const DEFAULT_LOG_PAGE = 100;
const MAX_LOG_PAGE = 1000;

const Sources = Type.Optional(
  Type.String({
    pattern: `^${SOURCE}(,${SOURCE})*$`,
    description:
      'Comma-separated: stdout, stderr, output (of terminals), system. All but system unless given',
  }),
);

export const LogEntry = strictObject({
  cursor: Type.String({ description: 'Hand it back to read on behind this entry' }),
  ts: Timestamp,
  source: Type.Enum([...LOG_SOURCES]),
  text: Type.String({ description: 'As it was written; not always whole lines' }),
  process: nullable(Type.String(), { description: 'Which process wrote it; null for entries of the system' }),
});

const COMMON = {
  tag: 'logs',
  method: 'GET',
  audience: 'both',
  role: 'member',
  params: strictObject({ sandbox_id: Uuid }),
  body: null,
  status: 200,
  errors: ['sandbox_not_found', 'invalid_cursor', 'orchestrator_unreachable'],
} as const;

export const logOperations = {
  'logs.follow': {
    ...COMMON,
    summary: 'Stream the log of a sandbox: events `log`, then `end` when the run is over',
    path: '/sandboxes/{sandbox_id}/logs',
    query: strictObject({ sources: Sources }),
    headers: strictObject({
      'last-event-id': Type.Optional(
        Type.String({
          maxLength: 64,
          description: 'Id of the last event that was seen; the stream goes on behind it',
        }),
      ),
    }),
    output: EVENT_STREAM,
  },
  'logs.list': {
    ...COMMON,
    summary: 'Read a part of the log of a sandbox, oldest first',
    path: '/sandboxes/{sandbox_id}/logs/entries',
    query: strictObject({
      sources: Sources,
      tail: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 100_000, description: 'Begin with the last so many entries' }),
      ),
      since: Type.Optional(TimestampInput),
      until: Type.Optional(TimestampInput),
      cursor: Type.Optional(Type.String({ maxLength: 64, description: 'Read on behind this entry' })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LOG_PAGE, default: DEFAULT_LOG_PAGE })),
    }),
    headers: NO_FIELDS,
    output: pageOf(LogEntry),
  },
} as const satisfies Record<string, RestOperation>;
