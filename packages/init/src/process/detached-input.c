#include "process/detached-input.h"

#include <stdlib.h>
#include <string.h>

#include "process/detached-record.h"

struct written {
  char id[WRITE_ID_MAX + 1];
  uint64_t bytes; // accepted: in the pipe, or queued for it
  bool is_over;   // this write requested the end of the input
};

static struct written *find(const struct detached *detached, const char *id) {
  for (unsigned i = 0; detached->written && i < WRITES_KEPT; i++) {
    if (!strcmp(detached->written[i].id, id)) return &detached->written[i];
  }
  return NULL;
}

/** Remembers the latest writes; the oldest is replaced. NULL: no memory. */
static struct written *remember(struct detached *detached, const char *id) {
  if (!detached->written) detached->written = calloc(WRITES_KEPT, sizeof *detached->written);
  if (!detached->written) return NULL;
  struct written *written = &detached->written[detached->next_written++ % WRITES_KEPT];
  *written = (struct written){0};
  strcpy(written->id, id); // at most WRITE_ID_MAX, checked by the caller
  return written;
}

static void refuse(struct conn *conn, uint32_t id, const char *kind, const char *text) { conn_error(conn, id, kind, text, NULL); }

/** A repetition of an accepted write. Answered like the first time: when the pipe has it. */
static void join(struct detached *detached, struct conn *conn, uint32_t id) {
  struct sink *in = &detached->process.in;
  if (!sink_is_open(in) || list_is_empty(&in->chunks)) return conn_answer_empty(conn, id, FLAG_TERMINAL, "svc.detached.done");
  if (detached->writing.conn) return refuse(conn, id, "resource_limit", "earlier input still waits to be read; try again");
  session_open(&detached->writing, conn, id, &detached_request);
}

void detached_write(struct detached *detached, struct conn *conn, uint32_t id, const struct detached_input *input) {
  struct sink *in = &detached->process.in;
  struct span data = input->data;
  struct written *written = input->write ? find(detached, input->write) : NULL;
  uint64_t accepted = written ? written->bytes : 0;
  if (input->write && (!input->write[0] || strlen(input->write) > WRITE_ID_MAX || input->offset > accepted)) {
    return refuse(conn, id, "invalid_payload", "the write has no such name, or goes on at an earlier offset");
  }
  if (written && (data.length ? input->offset + data.length <= accepted : written->is_over)) return join(detached, conn, id);
  if (!sink_is_open(in) || in->is_ending) return refuse(conn, id, "invalid_session", "stdin is closed");
  if (detached->writing.conn || detached_stdin_waiting + data.length > DETACHED_STDIN_MAX) {
    return refuse(conn, id, "resource_limit", "earlier input still waits to be read; try again");
  }
  if (input->write && !written && !(written = remember(detached, input->write)))
    return refuse(conn, id, "resource_limit", "out of memory");
  session_open(&detached->writing, conn, id, &detached_request);
  if (!data.length) {
    if (written) written->is_over = true;
    return sink_end(in);
  }
  if (written) data.at += accepted - input->offset, data.length -= (size_t)(accepted - input->offset);
  if (++detached->write_tag == 0) detached->write_tag = 1;
  detached_stdin_waiting += data.length;
  if (!sink_write(in, data.at, data.length, detached->write_tag)) {
    detached_stdin_waiting -= data.length;
    return detached_refuse(&detached->writing, "resource_limit", "out of memory");
  }
  // Bytes that can no longer be read count as not accepted.
  if (written && sink_is_open(in)) written->bytes += data.length;
}

void detached_recall_write(const struct detached *detached, struct conn *conn, uint32_t id, const char *write) {
  const struct written *written = write[0] ? find(detached, write) : NULL;
  struct writer payload = writer_new();
  write_map(&payload, 1);
  write_text(&payload, "bytes");
  if (written) write_uint(&payload, written->bytes);
  else write_null(&payload);
  if (!conn_answer(conn, id, FLAG_TERMINAL, "svc.detached.recalled", &payload)) conn_end(conn, CONN_LOST);
}
