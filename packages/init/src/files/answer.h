#ifndef SVC_FILE_ANSWER_H
#define SVC_FILE_ANSWER_H

#include <sys/stat.h>

#include "wire/session.h"

// The forms of core.fs.response. Each ends the request.
void file_ok(struct conn *, uint32_t id);
/** "operation: text of errno". */
void file_failed(struct conn *, uint32_t id, const char *operation, int error);
void file_refused(struct conn *, uint32_t id, const char *message);
void file_handle(struct conn *, uint32_t id, uint64_t handle);
void file_path(struct conn *, uint32_t id, const char *path);
void file_stat(struct conn *, uint32_t id, const char *path, const struct stat *);
/** Starts an answer {ok: true, error: null, data: …}; the caller writes the data and sends it. */
struct writer file_answer_new(void);
void file_answer_send(struct conn *, uint32_t id, struct writer *);

/** Writes one Entry. */
void file_entry(struct writer *, const char *path, const struct stat *);

#endif
