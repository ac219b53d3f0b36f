#ifndef SVC_BOUNDS_H
#define SVC_BOUNDS_H

// Every bound of PROTOCOL.md in one place. Input from a peer or the guest cannot grow memory beyond these.

enum {
  GENERATION = 7,

  FRAME_MIN = 5,
  FRAME_MAX = 4 * 1024 * 1024,
  FILE_CHUNK_MAX = 3 * 1024 * 1024,
  OUTPUT_CHUNK = 256 * 1024, // measured: 64 KiB costs a fifth more CPU per byte, 512 KiB gains nothing
  TCP_CHUNK = 64 * 1024,
  ANSWER_MAX = FRAME_MAX - 1024, // payload of one answer; leaves room for the envelope

  // Sources (process output, file reads, TCP) pause when this much is queued for the peer …
  OUT_SOURCE_HIGH = 256 * 1024,
  OUT_SOURCE_LOW = 64 * 1024,
  // … and no more requests are read when queued answers alone reach this.
  OUT_HARD = 1024 * 1024,

  // Bytes from a peer that a process or a TCP peer has not taken: above IN_SOFT only small frames (a signal, an EOF)
  // are still handled, and no more than IN_EXTRA bytes of them.
  IN_SOFT = 768 * 1024,
  IN_EXTRA = 256 * 1024,
  IN_SMALL_FRAME = 4096,

  SESSION_CONNECTIONS_MAX = 256,
  PROCESSES_MAX = 4096,
  DURABLE_MAX = 1024,
  DURABLE_RING = 256 * 1024,
  DETACHED_MAX = 1024,
  DETACHED_RING = 1024 * 1024, // per stream, unless the start says otherwise
  DETACHED_RING_MIN = 4096,
  DETACHED_RING_MAX = 16 * 1024 * 1024,
  DETACHED_STDIN_MAX = 16 * 1024 * 1024, // queued stdin of all detached processes together
  WRITE_ID_MAX = 64,                     // bytes of the name of a write to stdin
  WRITES_KEPT = 32,                      // named writes remembered for a detached process
  STDIN_FD_MAX = 255,                    // highest descriptor for the input instead of 0
  DETACHED_READER_TIMEOUT_MS = 10000,    // how long an idle reader may block a detached process
  TREE_ENTRIES_PER_TURN = 32,            // processes examined in one turn of the loop
  TREE_PASS_MS = 10,                     // between passes over all processes, while a killed tree has members
  TREE_PASSES_MAX = 1000,
  COUNTED_MAX = 16384, // upper bound of svc.counted
  RINGS_MAX = 64 * 1024 * 1024,
  HANDLES_MAX = 1024, // per connection; streams count too
  DISCARDS_MAX = 1024,
  WATCHES_MAX = 128,              // svc.watch.start, all connections together
  WATCH_FOLDERS_MAX = 16384,      // of one watch
  WATCH_FOLDERS_TOTAL = 32768,    // of all watches
  WATCH_PENDING_MAX = 128 * 1024, // queued event bytes of one watch
  WATCH_SEEN_MAX = 65536,         // names found by listing that a queued event may repeat
  WATCH_RENAME_MS = 100,          // timeout for the second half of a rename
  METADATA_MAX = 4096,            // bytes of names and values of one file
  KEY_MAX = 256,
  STRINGS_MAX = 65536,
  ENV_MAX = 4096,
  LIMITS_MAX = 32,
  GROUPS_MAX = 256,
  ACCOUNT_FILE_MAX = 1024 * 1024,
  CBOR_DEPTH_MAX = 16,
  FDS_RESERVED = 64, // reserved for redialling and for answers

  REDIAL_FAST_MS = 20,
  REDIAL_SLOW_MS = 250,
  REDIAL_SLOW_AFTER_MS = 2000,
  STATUS_INTERVAL_MS = 200,
  KILLED_ANSWER_MS = 3000,
  SHUTDOWN_GRACE_MS = 10000,
  TCP_CONNECT_MS = 30000,
  // A background child that holds stdout delays `exited` by this much silence, and never by more than the last one.
  QUIET_PIPE_MS = 100,
  QUIET_PTY_MS = 20,
  QUIET_TOTAL_MS = 1000,
};

#endif
