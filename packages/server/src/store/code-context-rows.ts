/** A code context. It is deleted with the run of its sandbox. */
export interface CodeContextRow {
  id: string;
  sandbox_id: string;
  run_id: string;
  name: string | null;
  language: string;
  cwd: string | null;
  /** Sealed JSON, because variables may contain secrets. */
  env: string | null;
  created_at: string;
}

/** A lease of a server that runs code in a context, or queues for it. */
export interface CodeLeaseRow {
  id: string;
  context_id: string;
  /** The lease expires when its server stops extending it. */
  leased_until: string;
  /** 1: an interrupt of the running code was requested. */
  is_interrupted: number;
}
