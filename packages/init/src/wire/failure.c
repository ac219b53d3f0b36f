#include "wire/failure.h"

#include <errno.h>
#include <string.h>

static const char *kind_of(int error) {
  switch (error) {
    case ENOENT: return "not_found";
    case ENOTDIR: return "bad_cwd";
    case EACCES:
    case EPERM: return "permission_denied";
    case ENOEXEC:
    case EISDIR:
    case ETXTBSY: return "not_executable";
    case E2BIG:
    case ELOOP:
    case ENAMETOOLONG:
    case EFAULT: return "bad_args";
    case EMFILE:
    case ENFILE:
    case EAGAIN: return "resource_limit";
    case ENOMEM: return "out_of_memory";
    default: return "other";
  }
}

/** Appends the text, as far as it fits. */
static void append(char *text, size_t size, const char *more) {
  size_t used = strlen(text), length = strlen(more);
  if (length > size - used - 1) length = size - used - 1;
  memcpy(text + used, more, length);
  text[used + length] = 0;
}

void failure_set(struct failure *failure, const char *kind, const char *stage, int error, const char *message) {
  const char *description = error ? strerrordesc_np(error) : NULL;
  failure->kind[0] = failure->stage[0] = failure->message[0] = 0;
  append(failure->kind, sizeof failure->kind, kind ? kind : kind_of(error));
  append(failure->stage, sizeof failure->stage, stage);
  failure->error = error;
  append(failure->message, sizeof failure->message, message);
  if (!error) return;
  append(failure->message, sizeof failure->message, ": ");
  append(failure->message, sizeof failure->message, description ? description : "unknown error");
}

void failure_send(struct conn *conn, uint32_t id, const char *type, const struct failure *failure) {
  struct writer payload = writer_new();
  write_map(&payload, 5);
  write_text_pair(&payload, "kind", failure->kind);
  write_text(&payload, "errno");
  if (failure->error) write_int(&payload, failure->error);
  else write_null(&payload);
  write_text_pair(&payload, "errno_name", failure->error ? errno_name(failure->error) : NULL);
  write_text_pair(&payload, "message", failure->message);
  write_text_pair(&payload, "stage", failure->stage);
  if (!conn_answer(conn, id, FLAG_TERMINAL, type, &payload)) conn_end(conn, CONN_LOST);
}

const char *errno_name(int error) { return strerrorname_np(error); }
