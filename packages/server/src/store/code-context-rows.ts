/** It ends with the run of its sandbox. */
export interface CodeContextRow {
  id: string;
  sandbox_id: string;
  run_id: string;
  name: string | null;
  language: string;
  cwd: string | null;
  /** Sealed JSON: variables may hold secrets. */
  env: string | null;
  created_at: string;
}

/** Code of a server that runs in a context, or waits for its turn. */
export interface CodeTurnRow {
  id: string;
  context_id: string;
  /** A server that does not extend it is taken for dead. */
  leased_until: string;
  /** Somebody has asked for the end of what runs. */
  is_interrupted: number;
}
